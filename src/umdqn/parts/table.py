"""Tables of parts: names that users type, and the classes behind them."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from umdqn.errors import UmdqnError, one_line, unknown
from umdqn.parts.part import Part

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class Table(Mapping[str, type[Part]]):
    """One kind of part, such as `metric`: every member by its name.

    Built-in members are given as `module:Class` and imported when first used, so that a table costs
    nothing at start-up.
    """

    def __init__(self, kind: str, base: str, members: Mapping[str, str]):
        self.kind = kind
        self._base_path = base
        self._paths = dict(members)
        self._classes: dict[str, type[Part]] = {}

    @property
    def base(self) -> type[Part]:
        """The abstract class that every member extends."""
        return load_attribute(self._base_path)

    def __iter__(self) -> Iterator[str]:
        return iter([*self._paths, *self._classes.keys() - self._paths.keys()])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in self._paths or name in self._classes

    def __getitem__(self, name: str) -> type[Part]:
        if name not in self._classes:
            self._classes[name] = load_attribute(self._paths[name])
        return self._classes[name]

    def source(self, name: str) -> str | type[Part]:
        """Return where a member is defined: its class if imported, else `module:Class`."""
        return self._classes.get(name) or self._paths[name]

    def register(self, name: str, part: Any) -> None:
        """Add a user's class under a name of its own."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise UmdqnError(
                f"{self.kind} {name!r} cannot be registered: names are lower-case words joined by -"
            )
        if name in self and self[name] is not part:
            raise UmdqnError(f"{self.kind} {name!r} is registered already, as {_path(self[name])}")
        self._check(part)
        self._classes[name] = part

    def find(self, name: str, path: str | None = None) -> type[Part]:
        """Return the class of a name, or of `module:Class`; `path` is where to look as a fallback.

        Raises `UmdqnError` with the nearest name if there is none.
        """
        if name in self:
            return self[name]
        path = path or (name if ":" in name else None)
        if path is None:
            raise unknown(self.kind, name, self)
        part = load_attribute(path, f"{self.kind} {name!r}")
        self._check(part)
        return part

    def name_of(self, part: Part) -> str:
        """Return the name of a part: the one in this table, else its `module:Class`."""
        kind = type(part)
        for name in self:
            known = self._classes.get(name) or self._paths[name]
            if known is kind or known == _path(kind):
                return name
        return _path(kind)

    def path_of(self, part: Part) -> str | None:
        """Return `module:Class` of a part that is not built in and can be imported elsewhere."""
        path = _path(type(part))
        if path in self._paths.values():
            return None
        module, _, name = path.partition(":")
        found = getattr(sys.modules.get(module), name, None)
        return path if found is type(part) and module != "__main__" else None

    def read(self, value: Any) -> Part:
        """Return the part that a user means: a name, an instance, or an object to be adopted."""
        if isinstance(value, str):
            return self.find(value)()
        base = self.base
        if isinstance(value, base):
            self._check(type(value))
            return value
        adopted = base.adopt(value)
        if adopted is None:
            raise UmdqnError(
                f"{self.kind} = {value!r} is not allowed: a name ({', '.join(self)}), "
                f"module:Class, or an instance of {_path(base)}"
            )
        return adopted

    def _check(self, part: Any) -> None:
        """Refuse a class that cannot serve as this kind of part, and say why."""
        base = self.base
        what = f"{self.kind} {getattr(part, '__name__', part)!r}"
        if not (isinstance(part, type) and issubclass(part, base)):
            raise UmdqnError(f"{what} cannot be used: it must extend {_path(base)}")
        missing = sorted(getattr(part, "__abstractmethods__", ()))
        if missing or inspect.isabstract(part):
            raise UmdqnError(f"{what} cannot be used: it lacks {', '.join(missing)}")
        parameters: Any = part.__dict__.get("__dataclass_params__")
        if parameters is None or not parameters.frozen:
            raise UmdqnError(f"{what} cannot be used: it must be a frozen dataclass")
        for field in dataclasses.fields(part):
            absent = dataclasses.MISSING
            if field.init and field.default is absent and field.default_factory is absent:
                raise UmdqnError(f"{what} cannot be used: field {field.name!r} has no default")


def load_attribute(path: str, what: str | None = None) -> Any:
    """Import `module:attribute`; the working directory counts as a place to look for modules."""
    what = what or repr(path)
    module_name, _, attribute = path.partition(":")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise UmdqnError(f"{what}: cannot import {module_name}: {one_line(error)}") from error
    if not hasattr(module, attribute):
        names = [name for name in vars(module) if not name.startswith("_")]
        raise unknown(f"attribute of {module_name}", attribute, names)
    return getattr(module, attribute)


def _path(part: type) -> str:
    return f"{part.__module__}:{part.__qualname__}"
