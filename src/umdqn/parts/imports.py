"""Importing what users name as `module:attribute`."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from umdqn.errors import UmdqnError, one_line, unknown


def load_attribute(path: str, what: str | None = None) -> Any:
    """Import `module:attribute`; the working directory counts as a place to look for modules."""
    what = what or repr(path)
    module_name, _, attribute = path.partition(":")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise UmdqnError(f"{what}: cannot import {module_name}: {one_line(error)}") from error
    if not hasattr(module, attribute):
        names = [name for name in vars(module) if not name.startswith("_")]
        raise unknown(f"attribute of {module_name}", attribute, names)
    return getattr(module, attribute)
