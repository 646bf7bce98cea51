"""Values of configuration fields, read from text, from JSON data, or as they are."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Sequence
from typing import Any

from umdqn.errors import InvalidField, check
from umdqn.specs import Domain
from umdqn.text import is_plain

_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def is_nested(value: Any) -> bool:
    """Return whether a value, or a type, has fields of its own; a domain is one value."""
    kind = value if isinstance(value, type) else type(value)
    return dataclasses.is_dataclass(kind) and kind is not Domain


def read_value(field: str, hint: Any, value: Any) -> Any:
    """Return `value`, which may be text or JSON data, in the type of its field."""
    if type(None) in typing.get_args(hint):
        inner = next(kind for kind in typing.get_args(hint) if kind is not type(None))
        absent = value is None or (isinstance(value, str) and value.lower() == "none")
        return None if absent else read_value(field, inner, value)
    if hint is Domain:
        return _read_domain(field, value)
    if typing.get_origin(hint) is tuple:
        items = value.split(",") if isinstance(value, str) else value
        items = items if isinstance(items, list | tuple) else [items]
        return tuple(read_value(field, typing.get_args(hint)[0], item) for item in items)
    if typing.get_origin(hint) is typing.Literal:
        allowed = typing.get_args(hint)
        check(value in allowed, field, value, f"one of {', '.join(map(str, allowed))}")
        return value
    if hint is bool:
        check(str(value).lower() in _WORDS, field, value, "true or false")
        return _WORDS[str(value).lower()]
    if hint is str:
        good = isinstance(value, str) and is_plain(value)
        check(good, field, value, "must be text, without control characters")
    return read_number(field, hint, value) if hint in (int, float) else value


def _read_domain(field: str, value: Any) -> Domain:
    if isinstance(value, Domain):
        return value
    pair = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2
    check(pair, field, value, "two numbers, z_min and z_max")
    return Domain(*(read_number(field, float, bound) for bound in value))


def read_number(field: str, kind: type, value: Any) -> Any:
    """Return an integer or a finite number; `1e5` counts as an integer."""
    meant = {int: "a whole number", float: "a number"}[kind]
    check(not isinstance(value, bool), field, value, f"must be {meant}")
    try:
        number = float(value)
    except OverflowError:
        raise InvalidField(field, value, f"must be {meant} of a size below 1e308") from None
    except (TypeError, ValueError):
        raise InvalidField(field, value, f"must be {meant}") from None
    check(abs(number) < float("inf"), field, value, f"must be {meant}, and finite")
    check(kind is float or number == int(number), field, value, f"must be {meant}")
    return kind(value) if isinstance(value, kind) else kind(number)
