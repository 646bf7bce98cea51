"""Tables of parts: names that users type, and the classes behind them."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from umdqn.errors import InvalidField, UmdqnError, one_line, unknown
from umdqn.parts import objects
from umdqn.parts.imports import allow, load_attribute
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
        self._adopted: dict[str, Part] = {}
        """Objects of other libraries that were registered under a name."""

    @property
    def base(self) -> type[Part]:
        """The abstract class that every member extends."""
        return load_attribute(self._base_path)

    def __iter__(self) -> Iterator[str]:
        added = [name for name in (*self._classes, *self._adopted) if name not in self._paths]
        return iter([*self._paths, *added])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in self._paths or name in self._classes or name in self._adopted

    def __getitem__(self, name: str) -> type[Part]:
        if name in self._adopted:
            return type(self._adopted[name])
        if name not in self._classes:
            self._classes[name] = load_attribute(self._paths[name])
        return self._classes[name]

    def source(self, name: str) -> str | type[Part]:
        """Return where a member is defined: its class if imported, else `module:Class`."""
        if name in self._adopted:
            return type(self._adopted[name])
        return self._classes.get(name) or self._paths[name]

    def register(self, name: str, part: Any) -> None:
        """Add a user's class, or an object that the kind adopts, under a name of its own."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise UmdqnError(
                f"{self.kind} {name!r} cannot be registered: names are lower-case words joined by -"
            )
        known = objects.recall(self.kind, name) if name in self._adopted else self.get(name)
        if known is not None and known is not part:
            raise UmdqnError(f"{self.kind} {name!r} is registered already, as {_path(self[name])}")
        is_class = isinstance(part, type) and issubclass(part, self.base)
        adopted = None if is_class else self.base.adopt(part, name)
        if adopted is not None:
            objects.keep_as(self.kind, name, part)
            self._adopted[name] = adopted
        else:
            self._check(part)
            self._classes[name] = part
            allow([_path(part)])

    def find(self, name: str, path: str | None = None) -> type[Part]:
        """Return the class of a name, or of `module:Class`; `path` is where to look as a fallback.

        Raises `UmdqnError` with the nearest name if there is none.
        """
        if name in self and (path is None or path == _path(self[name])):
            return self[name]
        path = path or (name if ":" in name else None)
        if path is None:
            raise unknown(self.kind, name, self)
        part = load_attribute(path, f"{self.kind} {name!r}")
        self._check(part)
        return part

    def foreign(self, name: str, path: str | None = None) -> str | None:
        """Return the `module:Class` that `find` may have to import, or None for built-in parts."""
        if name in self._paths and path in (None, self._paths[name]):
            return None
        return path or (name if ":" in name else None)

    def name_of(self, part: Part) -> str:
        """Return the name of a part: the one in this table, else its `module:Class`."""
        for name, adopted in self._adopted.items():
            if adopted == part:
                return name
        kind = type(part)
        for name in self:
            known = self.source(name)
            if (name not in self._adopted and known is kind) or known == _path(kind):
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
        path = None
        if isinstance(value, str):
            if value in self._adopted:
                return self._adopted[value]
            if value in self or ":" not in value:
                return self._made(self.find(value))
            path, value = value, load_attribute(value, f"{self.kind} {value!r}")
        base = self.base
        if isinstance(value, type) and issubclass(value, Part):
            self._check(value)
            return self._made(value)
        if isinstance(value, base):
            self._check(type(value))
            return self._plain(value)
        adopted = base.adopt(value, path)
        if adopted is None:
            raise UmdqnError(
                f"{self.kind} = {value!r} is not allowed: a name ({', '.join(self)}), "
                f"module:Class, or an instance of {_path(base)}"
            )
        return adopted

    def _made(self, part: type[Part]) -> Part:
        """Return a part with its defaults."""
        try:
            return self._plain(part())
        except UmdqnError:
            raise
        except Exception as error:
            name = part.__qualname__
            raise UmdqnError(f"{self.kind} {name!r} cannot be made: {one_line(error)}") from error

    def _plain(self, part: Any) -> Part:
        """Return a part with plain data in its fields: tuples for lists, numbers for NumPy's."""
        changed = {}
        for field in dataclasses.fields(part):
            value = getattr(part, field.name)
            plain: Any = tuple(value) if isinstance(value, list) else value
            if getattr(plain, "shape", None) == ():
                plain = plain.item()
            if field.init and plain is not value:
                changed[field.name] = plain
            try:
                hash(plain)
            except TypeError:
                allowed = "plain data: numbers, text, or tuples of these"
                raise InvalidField(f"{self.kind}.{field.name}", value, allowed) from None
        return dataclasses.replace(part, **changed) if changed else part

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
            if field.name in ("name", "class"):
                raise UmdqnError(f"{what} cannot be used: no field may be called {field.name!r}")
        fault = part.fault()
        if fault:
            raise UmdqnError(f"{what} cannot be used: {fault}")


def _path(part: type) -> str:
    return f"{part.__module__}:{part.__qualname__}"
