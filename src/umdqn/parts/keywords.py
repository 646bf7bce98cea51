"""Keyword arguments as users write them: `key=value` pairs, JSON, or dictionaries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from umdqn.errors import InvalidField, check
from umdqn.specs import Keywords

_PYTHON_WORDS = {"True": True, "False": False, "None": None}
_PAIR = "key=value, or a JSON object (ENV and AGENT come before it)"


def read_keywords(field: str, value: Any) -> Keywords:
    """Return keyword arguments given as pairs, as a JSON object, or as a dictionary."""
    if isinstance(value, Keywords):
        return value
    if isinstance(value, str):
        value = [value] if value.lstrip().startswith("{") else value.split()
    given = [value] if isinstance(value, Mapping) else value
    check(isinstance(given, list | tuple), field, value, _PAIR)
    found: dict[str, Any] = {}
    for each in given:
        found |= each if isinstance(each, Mapping) else _read_text(field, each)
    named = all(isinstance(name, str) and name.isidentifier() for name in found)
    check(named, field, found, "names of arguments as keys")
    try:
        return Keywords.of(found)
    except (TypeError, ValueError):
        raise InvalidField(field, found, "plain data: finite numbers, text, lists") from None


def read_pair(field: str, text: str) -> tuple[str, Any]:
    """Read `key=value`; the value is JSON, or else text."""
    key, equals, value = text.partition("=")
    check(bool(equals) and key.isidentifier(), field, text, _PAIR)
    if value in _PYTHON_WORDS:
        return key, _PYTHON_WORDS[value]
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def _read_text(field: str, text: Any) -> Mapping[str, Any]:
    check(isinstance(text, str), field, text, _PAIR)
    if not text.lstrip().startswith("{"):
        return dict([read_pair(field, text)])
    try:
        return json.loads(text)
    except ValueError:
        raise InvalidField(field, text, _PAIR) from None
