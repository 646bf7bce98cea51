"""Live Python objects behind plain names, so that configurations stay data."""

from __future__ import annotations

from typing import Any

from umdqn.errors import UmdqnError

PREFIX = "object "
"""How the names of live objects begin."""

_objects: dict[str, Any] = {}


def keep(kind: str, value: Any) -> str:
    """Keep an object for the life of this process and return its name; the same one each time."""
    for name, kept in _objects.items():
        if kept is value and name.startswith(f"{PREFIX}{kind} "):
            return name
    label = getattr(value, "__qualname__", type(getattr(value, "unwrapped", value)).__qualname__)
    name = f"{PREFIX}{kind} {label} {len(_objects) + 1}"
    _objects[name] = value
    return name


def recall(kind: str, name: str) -> Any:
    """Return the object that `keep` named."""
    if name not in _objects:
        raise UmdqnError(
            f"{kind} {name!r} was an object of another process: put it in a module and name it "
            "module:attribute to use it in several"
        )
    return _objects[name]
