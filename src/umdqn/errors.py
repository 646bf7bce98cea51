"""Errors and notices: every message is one plain line that names the field and what is allowed."""

from __future__ import annotations

import difflib
import math
import warnings
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

from umdqn.text import shortened, visible

# Tables with at most this many names are listed in full when a name is unknown.
_MOST_LISTED = 15
# Largest number that a program in single precision can hold, with room to calculate.
_LARGEST = 1e37
# Longest part of a foreign exception's message that is worth repeating.
_MOST_CHARACTERS = 400
# Longest value that is worth showing whole.
_MOST_OF_VALUE = 200


class UmdqnError(Exception):
    """A user's mistake, or a failure of their environment; the message is one line."""

    def __init__(self, message: str = ""):
        super().__init__(visible(message))


class InvalidField(UmdqnError):
    """A configuration field with a value that is not allowed."""

    def __init__(self, field: str, value: Any, allowed: str):
        self.field, self.value, self.allowed = field, value, allowed
        super().__init__(f"{field} = {shown(value)} is not allowed: {allowed}")

    def under(self, prefix: str) -> InvalidField:
        """Return the same error with the field's dotted name extended by its owner."""
        return InvalidField(f"{prefix}.{self.field}", self.value, self.allowed)


class Notice(Warning):
    """Information for the user that stops nothing."""


def notice(message: str) -> None:
    """Warn the user; the command line prints the message as a line of its own."""
    warnings.warn(visible(message), Notice, stacklevel=2)


def check(condition: bool, field: str, value: Any, allowed: str) -> None:
    """Raise `InvalidField` unless `condition` holds."""
    if not condition:
        raise InvalidField(field, value, allowed)


def check_count(field: str, value: Any, least: int = 1, most: int | None = None) -> None:
    """Raise `InvalidField` unless `least <= value <= most`; `most` defaults to 2^31 - 1."""
    bound = "below 2^31" if most is None else f"at most {most:,}"
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    inside = whole and least <= value < 2**31 and (most is None or value <= most)
    kind = "" if whole else "a whole number, "
    check(inside, field, value, f"{kind}at least {least} and {bound}")


def check_number(
    field: str,
    value: Any,
    *,
    above: int | float | None = None,
    least: int | float | None = None,
    most: int | float | None = None,
) -> None:
    """Raise `InvalidField` unless `value` is a number within these bounds and single precision."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    found: Any = value if number else math.nan
    inside = -_LARGEST <= found <= (_LARGEST if most is None else most)
    inside = inside and (above is None or found > above) and (least is None or found >= least)
    bounds = {"above": above, "at least": least, "at most": most}
    allowed = [f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None]
    if most is None and number and abs(found) > _LARGEST:
        allowed.append(f"at most {_LARGEST:g} in size")
    kind = [] if number else ["a number"]
    check(inside, field, value, ", ".join([*kind, *allowed]) or "a number")


def shown(value: Any) -> str:
    """Return the `repr` of a value, shortened if it is long."""
    try:
        return shortened(repr(value), _MOST_OF_VALUE)
    except ValueError:
        # Python refuses to write out integers of thousands of digits.
        return f"a {type(value).__name__} that is too large to show"


def one_line(error: BaseException) -> str:
    """Format an exception as a short text without line breaks."""
    text = visible(" ".join(str(error).split())[:_MOST_CHARACTERS])
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def out_of_memory(error: BaseException) -> UmdqnError:
    """Build the error for memory that ran out; NumPy and XLA say for what, Python does not."""
    why = visible(" ".join(str(error).split())[:_MOST_CHARACTERS])
    return UmdqnError(
        f"out of memory{f': {why}' if why else ''}; a smaller replay.capacity, fewer seeds or a "
        "smaller network take less"
    )


def unknown(kind: str, name: str, known: Iterable[str]) -> UmdqnError:
    """Build the error for a name that is not in a table; suggests the nearest name that is."""
    names = sorted(set(known))
    by_lower = {known.lower(): known for known in names}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    parts = [f"did you mean {by_lower[close[0]]!r}?"] if close else []
    if len(names) <= _MOST_LISTED or not close:
        parts.append(f"known: {', '.join(names)}")
    return UmdqnError(f"unknown {kind} {name!r}: {' '.join(parts)}")
