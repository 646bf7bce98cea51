"""Importing what users name as `module:attribute`."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

from umdqn.errors import UmdqnError, notice, one_line, unknown

# Files of modules that runs were made with, by name.
_places: dict[str, Path] = {}


def module_file(path: str) -> str | None:
    """Return the file of the module in `module:attribute`; None unless it is imported."""
    file = getattr(sys.modules.get(path.partition(":")[0]), "__file__", None)
    return str(Path(file).resolve()) if isinstance(file, str) else None


def remember_place(module: str, file: str) -> None:
    """Note where a module was when a run was made, for when it is imported; imports nothing."""
    _places[module] = Path(file)


def _make_findable(module: str, what: str) -> None:
    """Let a module be found where a run found it, unless it is found anyway; tell the user."""
    place, root = _places.get(module), module.partition(".")[0]
    if place is None or root in sys.modules:
        return
    home = place.parents[module.count(".") + (place.name == "__init__.py")]
    # Looks for the outermost package only: looking further would import it.
    found = importlib.util.find_spec(root)
    if found is None and place.is_file():
        sys.path.append(str(home))
        notice(f"{what} is imported from {place}, where it was when the run was made")
    elif found is not None and found.origin and not Path(found.origin).is_relative_to(home):
        notice(f"{what} is imported from {found.origin}: when the run was made, it was {place}")


def load_attribute(path: str, what: str | None = None) -> Any:
    """Import `module:attribute`; the working directory counts as a place to look for modules."""
    what = what or repr(path)
    module_name, _, attribute = path.partition(":")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    _make_findable(module_name, what)
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise UmdqnError(f"{what}: cannot import {module_name}: {one_line(error)}") from error
    if not hasattr(module, attribute):
        names = [name for name in vars(module) if not name.startswith("_")]
        raise unknown(f"attribute of {module_name}", attribute, names)
    return getattr(module, attribute)
