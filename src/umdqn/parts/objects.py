"""Live Python objects behind plain names, so that configurations stay data."""

from __future__ import annotations

import secrets
import sys
from typing import Any

from umdqn.errors import UmdqnError
from umdqn.parts.imports import load_attribute

PREFIX = "object "
"""How the names of objects begin that no other process can find."""

# In the names of objects: those of another process must not be mistaken for ours.
_PROCESS = secrets.token_hex(4)

_objects: dict[tuple[str, str], Any] = {}


def keep(kind: str, value: Any) -> str:
    """Return a name for an object, the same one each time.

    It is `module:attribute` where that leads to the object, in any process; otherwise the object is
    kept for the life of this process.
    """
    for (known, name), kept in _objects.items():
        if kept is value and known == kind:
            return name
    path = importable_path(value)
    if path is not None:
        return path
    label = getattr(value, "__qualname__", type(getattr(value, "unwrapped", value)).__qualname__)
    return keep_as(kind, f"{PREFIX}{label} {_PROCESS}-{len(_objects) + 1}", value)


def keep_as(kind: str, name: str, value: Any) -> str:
    """Keep an object under a given name, which is returned."""
    _objects[kind, name] = value
    return name


def importable_path(value: Any) -> str | None:
    """Return `module:attribute` of a function or class, if it leads there in other processes."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
        return None
    return f"{module}:{name}" if getattr(sys.modules.get(module), name, None) is value else None


def recall(kind: str, name: str) -> Any:
    """Return the object that a name stands for."""
    if (kind, name) in _objects:
        return _objects[kind, name]
    if ":" in name and not name.startswith(PREFIX):
        return load_attribute(name, f"{kind} {name!r}")
    if not name:
        raise UmdqnError(f"{kind} is missing: pass it in Python, or name it module:attribute")
    raise UmdqnError(
        f"{kind} {name!r} was an object of another process: put it in a module and name it "
        "module:attribute, or register it under a name, to use it in several"
    )
