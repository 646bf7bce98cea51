"""Errors and notices: every message is one plain line that names the field and what is allowed."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Callable, Iterable
from numbers import Integral
from typing import Any

from umdqn.text import shortened, visible

# Tables with at most this many names are listed in full when a name is unknown.
_MOST_LISTED = 15
# Of longer tables, the nearest names are listed: at most so many, if they are at least so similar,
# and not much less similar than the nearest.
_MOST_NEAR = 4
_SIMILAR = 0.55
_WORSE = 0.2
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
    """Warn the user, in one line that does not quote our source."""
    if warnings.formatwarning is not _formatted:
        _usual.append(warnings.formatwarning)
        warnings.formatwarning = _formatted
    warnings.warn(visible(message), Notice, stacklevel=2)


_usual: list[Callable[..., str]] = []
"""How other warnings are formatted; the last one counts."""


def _formatted(message: Any, category: type[Warning], *where: Any, **line: Any) -> str:
    """Format notices as one line, and everything else as before."""
    if issubclass(category, Notice):
        return f"note: {message}\n"
    return _usual[-1](message, category, *where, **line)


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


def shown(value: Any) -> str:
    """Return the `repr` of a value, shortened if it is long."""
    try:
        return shortened(repr(value), _MOST_OF_VALUE)
    except ValueError:
        # Python refuses to write out integers of thousands of digits.
        return f"a {type(value).__name__} that is too large to show"
    except Exception:
        return f"a {type(value).__name__} that cannot be shown"


def one_line(error: BaseException) -> str:
    """Format an exception as a short text without line breaks."""
    try:
        text = visible(" ".join(str(error).split())[:_MOST_CHARACTERS])
    except Exception:  # of a user's class
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def out_of_memory(error: BaseException) -> UmdqnError:
    """Build the error for memory that ran out; NumPy and XLA say for what, Python does not."""
    why = visible(" ".join(str(error).split())[:_MOST_CHARACTERS])
    return UmdqnError(
        f"out of memory{f': {why}' if why else ''}; a smaller replay.capacity, fewer seeds or a "
        "smaller network take less"
    )


def unknown(kind: str, name: str, known: Iterable[str], listed_by: str = "") -> UmdqnError:
    """Build the error for a name that is not in a table; suggests the nearest names that are.

    `listed_by` is the command that lists a long table.
    """
    names = sorted(set(known))
    near = nearest(name, names)
    parts = [f"did you mean {near[0]!r}?"] if near else []
    if len(names) <= _MOST_LISTED:
        parts.append(f"known: {', '.join(names)}")
    elif near[1:]:
        parts.append(f"also near: {', '.join(near[1:])}")
    elif not near:
        parts.append(f"no name of {len(names)} is near it")
        parts += [f"({listed_by} lists them)"] if listed_by else []
    return UmdqnError(f"unknown {kind} {name!r}: {' '.join(parts)}")


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Return the names nearest to an unknown one, the nearest first and new versions before old."""
    likeness = {each: _likeness(name, each) for each in known}
    best = max(likeness.values(), default=0.0)
    near = [each for each in likeness if likeness[each] >= max(_SIMILAR, best - _WORSE)]
    return sorted(near, key=lambda each: (-likeness[each], -_version(each)))[:_MOST_NEAR]


def _version(name: str) -> int:
    """Return the version that a name ends with, as Gymnasium writes it: 1 of CartPole-v1."""
    found = re.search(r"-v(\d{1,9})$", name, re.ASCII)
    return int(found[1]) if found else 0


def _likeness(asked: str, known: str) -> float:
    """Return from 0 to 1 how alike two names are, as a whole or without what precedes a dot."""
    pairs = [(_words(asked), _words(known))]
    pairs += [(first.rpartition(".")[2], second.rpartition(".")[2]) for first, second in pairs]
    whole, last = (difflib.SequenceMatcher(None, *pair).ratio() for pair in pairs)
    # The same last words under another heading are a little less alike.
    return max(whole, 0.95 * last)


def _words(name: str) -> str:
    return name.lower().replace("_", "-").replace("/", ".")
