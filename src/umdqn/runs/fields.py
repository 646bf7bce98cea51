"""Configuration fields by dotted name: reading, setting, and conversion to and from JSON."""

from __future__ import annotations

import dataclasses
import json
import re
import typing
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from umdqn.errors import InvalidField, UmdqnError, unknown
from umdqn.parts.describe import describe
from umdqn.parts.part import Part
from umdqn.runs.aliases import advice_on, field_of
from umdqn.runs.kinds import DEFAULTS, KINDS
from umdqn.runs.values import is_nested, read_value
from umdqn.specs import Keywords

T = TypeVar("T")

# Fields whose dictionaries are values, not fields by name.
_WHOLE = ("env_kwargs",)


def default_part(kind: str) -> Any:
    """Return a dataclass field whose default is the default part, imported when first needed."""
    return dataclasses.field(default_factory=lambda: KINDS[kind][DEFAULTS[kind]]())


def name_of(kind: str, part: Part) -> str:
    """Return the name of a part in its table, or `module:Class`."""
    return KINDS[kind].name_of(part)


def read_part(kind: str, value: Any) -> Part:
    """Return the part that a user means: a name, `module:Class`, a class, or an instance."""
    table = KINDS[kind]
    widths = isinstance(value, list | tuple | int) or (
        isinstance(value, str) and re.fullmatch(r"[\d,\s]+", value)
    )
    if kind == "torso" and widths:
        raise InvalidField(kind, value, f"one of {', '.join(table)}; torso.widths sets its layers")
    return table.read(value)


def flattened(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return overrides with nested dictionaries replaced by dotted names.

    `{"replay": {"name": "uniform", "capacity": 5000}}` becomes
    `{"replay": "uniform", "replay.capacity": 5000}`.
    """
    found: dict[str, Any] = {}
    for name, value in overrides.items():
        if not isinstance(value, Mapping) or not value or name in _WHOLE:
            found[name] = value
            continue
        inner = dict(value)
        path, chosen = inner.pop("class", None), inner.pop("name", None)
        if chosen is not None or path is not None:
            found[name] = chosen if path is None or chosen in KINDS.get(name, ()) else path
        found |= {f"{name}.{key}": each for key, each in flattened(inner).items()}
    return found


def named_fields(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return a user's overrides by dotted names, with aliases replaced by what they stand for."""
    given = flattened(overrides)
    names: dict[str, str] = {}
    for name in given:
        first = names.setdefault(field_of(name), name)
        if first != name:
            raise UmdqnError(f"{first!r} and {name!r} are the same field: give one of them")
    return {path: given[name] for path, name in names.items()}


def leaves(config: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield dotted name, type and value of every field that a user can set."""
    hints = field_types(type(config))
    for name, hint in hints.items():
        path, value = prefix + name, getattr(config, name)
        chosen = _is_kind(type(config), name)
        if chosen:
            yield path, str, name_of(name, value)
        if is_nested(value):
            yield from leaves(value, path + ".")
        elif not chosen:
            yield path, hint, value
        if isinstance(value, Keywords):
            yield from ((f"{path}.{key}", Any, each) for key, each in value.values.items())


def override(config: T, overrides: Mapping[str, Any]) -> T:
    """Return `config` with fields replaced, given by dotted names or nested dictionaries.

    Text is converted to each field's type. All fields change at once, so that a check that involves
    several of them sees the final values only.
    """
    hints = field_types(type(config))
    inner: dict[str, dict[str, Any]] = {}
    values: dict[str, Any] = {}
    for path, value in sorted(flattened(overrides).items(), key=lambda item: item[0]):
        head, _, rest = path.partition(".")
        if rest and isinstance(getattr(config, head, None), Keywords):
            # One argument of several: a sweep can vary it.
            before = values.get(head, getattr(config, head))
            values[head] = read_value(head, Keywords, before.values | {rest: value})
            continue
        if head not in hints or (rest and not is_nested(getattr(config, head))):
            raise _no_such_field(config, path)
        if rest:
            inner.setdefault(head, {})[rest] = value
        elif isinstance(value, type(getattr(config, head))) and is_nested(value):
            values[head] = value
        elif is_nested(getattr(config, head)) and not _is_kind(type(config), head):
            names = ", ".join(f"{head}.{name}" for name in field_types(hints[head]))
            raise InvalidField(head, value, f"it has fields of its own: {names}")
        elif _is_kind(type(config), head):
            values[head] = _chosen(head, getattr(config, head), value)
        else:
            values[head] = read_value(head, hints[head], value)
    for head, fields in inner.items():
        part = values.get(head, getattr(config, head))
        try:
            values[head] = override(part, fields)
        except InvalidField as error:
            raise error.under(head) from None
        except UnknownField as error:
            raise _no_field_of(head, part, error.path) from None
    return dataclasses.replace(typing.cast(Any, config), **values)


def _chosen(kind: str, current: Part, value: Any) -> Part:
    """Return the part that is chosen; naming the current one keeps its fields."""
    part = read_part(kind, value)
    return current if isinstance(value, str) and type(part) is type(current) else part


class MissingPart(UmdqnError):
    """A part that a file names and that this process cannot find."""


class UnknownField(UmdqnError):
    """A dotted name that leads to no field."""

    def __init__(self, path: str, error: UmdqnError):
        self.path = path
        super().__init__(str(error))


def _no_such_field(config: Any, path: str) -> UnknownField:
    advice = None if isinstance(config, Part) else advice_on(path)
    if advice is not None:
        return UnknownField(path, UmdqnError(f"there is no field {path!r}: {advice}"))
    names = [name for name, _, _ in leaves(config)]
    return UnknownField(path, unknown("field", path, names, "umdqn train --help"))


def _no_field_of(head: str, part: Any, rest: str) -> UmdqnError:
    owner = f"{head} {name_of(head, part)!r}" if head in KINDS else head
    names = [name for name, _, _ in leaves(part)]
    if not names:
        text = f"unknown field of {owner} {rest!r}: it has no fields"
    else:
        text = str(unknown(f"field of {owner}", rest, names))
    others = _parts_with(head, rest) if head in KINDS else []
    return UmdqnError(text + (f"; {head} {' and '.join(map(repr, others))} has it" * bool(others)))


def _parts_with(kind: str, name: str) -> list[str]:
    """Return the parts of a table that have a field."""
    table = KINDS[kind]
    fields = {part: describe(table.source(part)).fields for part in table}
    return [part for part in table if name in {field.name for field in fields[part]}]


def field_types(kind: Any) -> dict[str, Any]:
    """Return the types of a dataclass's fields."""
    fields = [field for field in dataclasses.fields(kind) if field.init]
    try:
        hints = typing.get_type_hints(kind)
    except NameError:
        # A class in a function may name types that only that function sees.
        hints = {field.name: type(field.default) for field in fields}
    return {field.name: hints[field.name] for field in fields}


def _is_kind(owner: type, name: str) -> bool:
    """Return whether a field of a dataclass holds a part to be chosen by name."""
    return name in KINDS and not issubclass(owner, Part)


def to_dict(config: Any) -> dict[str, Any]:
    """Return a configuration, or a specification, as JSON data."""
    data: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if not field.init:
            continue
        if is_nested(value):
            chosen = _named(field.name, value) if _is_kind(type(config), field.name) else {}
            data[field.name] = chosen | to_dict(value)
        elif isinstance(value, Keywords):
            data[field.name] = value.values
        elif dataclasses.is_dataclass(value):
            data[field.name] = list(dataclasses.astuple(typing.cast(Any, value)))
        else:
            data[field.name] = _listed(value) if isinstance(value, tuple) else value
    return data


def _listed(values: tuple[Any, ...]) -> list[Any]:
    return [to_dict(value) if is_nested(value) else value for value in values]


def _named(kind: str, part: Part) -> dict[str, str]:
    """Return what identifies a part in JSON: its name and, if not built in, its class."""
    path = KINDS[kind].path_of(part)
    return {"name": name_of(kind, part)} | ({"class": path} if path else {})


def from_dict(kind: type[T], data: Mapping[str, Any]) -> T:
    """Return the configuration of JSON data; fields that are missing take their defaults."""
    hints = field_types(kind)
    unexpected = sorted(set(data) - set(hints))
    if unexpected:
        raise UmdqnError(f"the configuration has unknown fields: {', '.join(unexpected)}")
    return kind(**{name: _from(kind, name, hints[name], value) for name, value in data.items()})


def _from(owner: type, name: str, hint: Any, value: Any) -> Any:
    if _is_kind(owner, name):
        fields = dict(value)
        try:
            part = KINDS[name].find(fields.pop("name"), fields.pop("class", None))
        except UmdqnError as error:
            raise MissingPart(str(error)) from error
        return from_dict(part, fields)
    if is_nested(hint):
        return from_dict(typing.cast(type, hint), value)
    if typing.get_origin(hint) is tuple and is_nested(typing.get_args(hint)[0]):
        return tuple(from_dict(typing.get_args(hint)[0], each) for each in value)
    return read_value(name, hint, value)


def check_saved(config: Any) -> None:
    """Refuse parts that could not be read back from a manifest, such as classes in a function."""
    for kind, table in KINDS.items():
        part = getattr(config, kind)
        for name, hint in field_types(type(part)).items():
            try:
                json.dumps(read_value(name, hint, getattr(part, name)))
            except InvalidField as error:
                raise error.under(kind) from None
            except (TypeError, ValueError):
                allowed = "plain data: numbers, text, or tuples of these"
                raise InvalidField(f"{kind}.{name}", getattr(part, name), allowed) from None
        data = _named(kind, part) | to_dict(part)
        try:
            same = from_dict(table.find(data.pop("name"), data.pop("class", None)), data) == part
        except UmdqnError:
            same = False
        if not same:
            raise UmdqnError(
                f"{kind} {type(part).__qualname__!r} cannot be saved with a run: put its class at "
                f"the top of a module, or call umdqn.register({kind!r}, NAME, CLASS)"
            )
