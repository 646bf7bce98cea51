"""Ranges of fields, declared with their types: `rate: Annotated[float, Range(above=0, most=1)]`.

Checks, help texts and documentation read the same declaration.
"""

from __future__ import annotations

import dataclasses
import typing
from functools import cache
from numbers import Integral, Real
from typing import Annotated, Any

from umdqn.errors import InvalidField, check

# Numbers end up in 32-bit arrays, and some room is needed to calculate with them.
_LARGEST_INTEGER = 2**31
_LARGEST = 1e37


@dataclasses.dataclass(frozen=True)
class Range:
    """Numbers between bounds; of a tuple, which must not be empty, every item is one."""

    least: float | int | None = None
    """Smallest number allowed."""
    most: float | int | None = None
    """Largest number allowed."""
    above: float | int | None = None
    """Bound that every number exceeds."""
    below: float | int | None = None
    """Bound that no number reaches."""
    multiple_of: int | None = None
    """Whole numbers must be multiples of it."""
    whole: bool = False
    """Whether only whole numbers are allowed; ranges of fields take it from the field's type."""

    def __str__(self) -> str:
        if self.least is not None and self.most is not None:
            parts = [f"from {self.least:,} to {self.most:,}"]
        elif self.least is not None and self.below is not None:
            parts = [f"from {self.least:,} to below {self.below:,}"]
        else:
            words = {"above": self.above, "at least": self.least}
            words |= {"below": self.below, "at most": self.most}
            parts = [f"{word} {bound:,}" for word, bound in words.items() if bound is not None]
        if self.multiple_of is not None:
            parts.append("even" if self.multiple_of == 2 else f"a multiple of {self.multiple_of}")
        return ", ".join(parts)

    def of(self, many: bool) -> str:
        """Return what is allowed for one number, or for a tuple of them."""
        return f"one or more numbers, each {self}" if many else str(self)

    def check(self, field: str, value: Any) -> None:
        """Raise `InvalidField` unless a number, or every number of a tuple, is in the range."""
        many = isinstance(value, tuple | list)
        items = value if many else (value,)
        check(len(items) > 0, field, value, self.of(many))
        for item in items:
            allowed = self._fault(item)
            if allowed is not None:
                raise InvalidField(
                    field, value, f"one or more numbers, each {allowed}" if many else allowed
                )

    def _fault(self, value: Any) -> str | None:
        """Return what is allowed if a value is not."""
        number = isinstance(value, Integral if self.whole else Real) and not isinstance(value, bool)
        if not number:
            return f"a whole number, {self}" if self.whole else f"a number, {self}"
        if not self._holds(value):
            return str(self)
        unbounded = self.most is None and self.below is None
        if unbounded and self.whole and abs(value) >= _LARGEST_INTEGER:
            return f"{self} and below 2^31"
        if unbounded and not self.whole and abs(value) > _LARGEST:
            return f"{self}, at most {_LARGEST:g} in size"
        return None

    def _holds(self, number: Any) -> bool:
        return bool(
            number == number
            and (self.least is None or number >= self.least)
            and (self.most is None or number <= self.most)
            and (self.above is None or number > self.above)
            and (self.below is None or number < self.below)
            and (self.multiple_of is None or number % self.multiple_of == 0)
        )


Count = Annotated[int, Range(least=1)]
"""How many there are of something."""
Positive = Annotated[float, Range(above=0)]
"""A number above 0."""
Probability = Annotated[float, Range(least=0, most=1)]
"""A probability."""
Share = Annotated[float, Range(above=0, most=1)]
"""A share that is not 0."""
Widths = Annotated[tuple[int, ...], Range(least=1)]
"""Widths of the layers of a network."""


@cache
def ranges(kind: type) -> dict[str, Range]:
    """Return the ranges that a dataclass declares, by field."""
    try:
        hints = typing.get_type_hints(kind, include_extras=True)
    except NameError:
        # A class in a function may name types that only that function sees.
        return {}
    found = {}
    for name, hint in hints.items():
        for declared in getattr(hint, "__metadata__", ()):
            if isinstance(declared, Range):
                whole = hint.__origin__ in (int, tuple[int, ...])
                found[name] = dataclasses.replace(declared, whole=whole)
    return found


def check_ranges(value: Any) -> None:
    """Raise `InvalidField` for the first field of a dataclass that is out of its range."""
    kind: Any = type(value)
    for name, allowed in ranges(kind).items():
        allowed.check(name, getattr(value, name))
