"""Configuration fields by dotted name: reading, setting, and translating to and from JSON."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from umdqn.laws import REPRESENTATIONS
from umdqn.metrics import METRICS
from umdqn.types import Domain, InvalidField, UmdqnError, check, unknown

T = TypeVar("T")

CHOICES: dict[str, Mapping[str, type]] = {"representation": REPRESENTATIONS, "metric": METRICS}
"""Fields that hold one of several parts, by the part's name."""


def name_of(field: str, part: Any) -> str:
    """The name under which a part stands in its table."""
    return next(name for name, kind in CHOICES[field].items() if kind is type(part))


def leaves(config: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Dotted name, type and value of every field that a user can set."""
    hints = _hints(type(config))
    for field in dataclasses.fields(config):
        path, value = prefix + field.name, getattr(config, field.name)
        if field.name in CHOICES:
            yield path, str, name_of(field.name, value)
        if _is_part(value):
            yield from leaves(value, path + ".")
        elif field.name not in CHOICES:
            yield path, hints[field.name], value


def set_field(config: Any, path: str, value: Any) -> Any:
    """`config` with the field at `path` replaced; text is read according to the field's type."""
    head, _, rest = path.partition(".")
    hints = _hints(type(config))
    if head not in hints:
        raise KeyError(path)
    if rest:
        part = getattr(config, head)
        if not _is_part(part):
            raise KeyError(path)
        try:
            return dataclasses.replace(config, **{head: set_field(part, rest, value)})
        except InvalidField as error:
            raise error.under(head) from None
    return dataclasses.replace(config, **{head: _value(head, hints[head], value)})


def _value(head: str, hint: Any, value: Any) -> Any:
    """What to put in a field: a part by its name, or a value in the field's type."""
    if head not in CHOICES:
        return _read(head, hint, value)
    if str(value) not in CHOICES[head]:
        raise unknown(head, str(value), CHOICES[head])
    return CHOICES[head][str(value)]()


def override(config: Any, overrides: Mapping[str, Any]) -> Any:
    """`config` with many fields replaced; whole parts before the fields inside them."""
    # Whole parts all at once, since one may not go with what another one replaces.
    parts = {name: _value(name, str, overrides[name]) for name in CHOICES if name in overrides}
    # Naming the part that is there already changes nothing.
    new = {n: part for n, part in parts.items() if type(part) is not type(getattr(config, n))}
    config = dataclasses.replace(config, **new)
    for path in sorted(set(overrides) - set(parts)):
        try:
            config = set_field(config, path, overrides[path])
        except KeyError:
            raise _no_such_field(config, path) from None
    return config


def _hints(kind: Any) -> dict[str, Any]:
    """Types of a dataclass's fields."""
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _no_such_field(config: Any, path: str) -> UmdqnError:
    head, _, rest = path.partition(".")
    if rest and head in CHOICES:
        part = getattr(config, head)
        owner = f"field of {head} {name_of(head, part)!r}"
        return unknown(owner, rest, (name for name, _, _ in leaves(part)))
    return unknown("field", path, (name for name, _, _ in leaves(config)))


def all_leaves(config: Any) -> dict[str, Any]:
    """Types of all fields by dotted name, those of every part that could be chosen included."""
    found = {path: hint for path, hint, _ in leaves(config)}
    for head, table in CHOICES.items():
        for kind in table.values():
            found |= {path: hint for path, hint, _ in leaves(kind(), f"{head}.")}
    return found


def to_dict(config: Any) -> dict[str, Any]:
    """A configuration as JSON data."""
    data: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if _is_part(value):
            name = {"name": name_of(field.name, value)} if field.name in CHOICES else {}
            data[field.name] = name | to_dict(value)
        elif isinstance(value, Domain):
            data[field.name] = [value.low, value.high]
        else:
            data[field.name] = list(value) if isinstance(value, tuple) else value
    return data


def from_dict(kind: type[T], data: Mapping[str, Any]) -> T:
    """The configuration of JSON data; fields that an older version did not have take defaults."""
    hints = _hints(kind)
    unexpected = sorted(set(data) - set(hints))
    if unexpected:
        raise UmdqnError(f"the configuration has unknown fields: {', '.join(unexpected)}")
    values = {name: _part(name, hints[name], value) for name, value in data.items()}
    return kind(**values)


def _part(name: str, hint: Any, value: Any) -> Any:
    if name in CHOICES:
        fields = dict(value)
        chosen = fields.pop("name")
        if chosen not in CHOICES[name]:
            raise unknown(name, chosen, CHOICES[name])
        return from_dict(CHOICES[name][chosen], fields)
    if dataclasses.is_dataclass(hint) and hint is not Domain:
        return from_dict(typing.cast(type, hint), value)
    return _read(name, hint, value)


def _is_part(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, Domain)


def _read(field: str, hint: Any, value: Any) -> Any:
    """`value`, given as text, as tokens or as JSON data, in the type of its field."""
    if type(None) in typing.get_args(hint):
        inner = next(kind for kind in typing.get_args(hint) if kind is not type(None))
        return None if value is None else _read(field, inner, value)
    if hint is Domain:
        if isinstance(value, Domain):
            return value
        pair = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2
        check(pair, field, value, "two numbers, z_min and z_max")
        return Domain(*(read_number(field, float, bound) for bound in value))
    if typing.get_origin(hint) is tuple:
        items = value.split(",") if isinstance(value, str) else value
        items = items if isinstance(items, list | tuple) else [items]
        return tuple(_read(field, typing.get_args(hint)[0], item) for item in items)
    if typing.get_origin(hint) is typing.Literal:
        check(value in typing.get_args(hint), field, value, f"one of {', '.join(hint.__args__)}")
        return value
    if hint is bool:
        words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        known = str(value).lower() in words
        check(known, field, value, "true or false")
        return words[str(value).lower()]
    return value if hint is str else read_number(field, hint, value)


def read_number(field: str, kind: type, value: Any) -> Any:
    """An integer or a finite number; `1e5` is an integer too."""
    meant = {int: "a whole number", float: "a number"}[kind]
    check(not isinstance(value, bool), field, value, f"must be {meant}")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidField(field, value, f"must be {meant}") from None
    check(abs(number) < float("inf"), field, value, f"must be {meant}")
    check(kind is float or number == int(number), field, value, f"must be {meant}")
    return kind(value) if isinstance(value, kind) else kind(number)
