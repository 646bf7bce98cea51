"""Importing what users name as `module:attribute`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from umdqn.errors import UmdqnError, one_line, unknown

_allowed: set[str] = set()
"""Names that this process has imported, or that its user allowed to be imported."""


def load_attribute(path: str, what: str | None = None) -> Any:
    """Import `module:attribute`; the working directory is the last place to look for modules.

    Names that come from files are checked before they get here: see `runs/trust.py`.
    """
    what = what or repr(path)
    module_name, _, attribute = path.partition(":")
    _search_working_directory()
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise UmdqnError(f"{what}: cannot import {module_name}: {one_line(error)}") from error
    if not hasattr(module, attribute):
        names = [name for name in vars(module) if not name.startswith("_")]
        raise unknown(f"attribute of {module_name}", attribute, names)
    allow([path])
    return getattr(module, attribute)


def allow(paths: Iterable[str]) -> None:
    """Remember names whose import the user wants, to the end of this process."""
    _allowed.update(paths)


def is_allowed(path: str) -> bool:
    """Return whether a name has been imported in this process, or allowed."""
    return path in _allowed


def file_of(path: str) -> str | None:
    """Return the file that importing `module:attribute` begins with; imports nothing.

    For a module in a package it is that of the outermost package. None if there is no such module,
    or if it is built into Python.
    """
    _search_working_directory()
    try:
        # Looking for a module inside of a package would import the package.
        found = importlib.util.find_spec(path.partition(":")[0].partition(".")[0])
    except (ImportError, ValueError):
        return None
    places = [] if found is None else [found.origin, *(found.submodule_search_locations or ())]
    known = [os.path.realpath(place) for place in places if place and os.path.exists(place)]
    return known[0] if known else None


def _search_working_directory() -> None:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
