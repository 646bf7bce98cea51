"""Ranges of fields: one declaration for checks and help, for every number of the configuration."""

import dataclasses
import math
import typing
from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from umdqn.errors import InvalidField
from umdqn.parts.describe import describe
from umdqn.parts.part import Part
from umdqn.parts.ranges import Count, Range, ranges
from umdqn.runs.config import Config, Evaluation
from umdqn.runs.fields import field_types
from umdqn.runs.kinds import KINDS

PARTS = [part for table in KINDS.values() for part in (table[name] for name in table)]
NUMBERS = (int, float, tuple[int, ...], tuple[float, ...])
TEXTS = {
    Range(least=1): "at least 1",
    Range(above=0): "above 0",
    Range(above=0, most=1): "above 0, at most 1",
    Range(least=0, most=1): "from 0 to 1",
    Range(least=0, below=1): "from 0 to below 1",
    Range(least=2, most=65_536, multiple_of=2): "from 2 to 65,536, even",
    Range(least=3, multiple_of=3): "at least 3, a multiple of 3",
}


@pytest.mark.parametrize("declared", TEXTS)
def test_ranges_say_what_is_allowed(declared):
    assert str(declared) == TEXTS[declared]


@pytest.mark.parametrize("kind", [*PARTS, Config, Evaluation], ids=lambda kind: kind.__name__)
def test_every_number_has_a_range_that_its_help_text_shows(kind):
    """No number of the configuration is unchecked, and none is undocumented."""
    declared = ranges(kind)
    shown = {field.name: field.allowed for field in describe(kind).fields}
    for name, hint in field_types(kind).items():
        assert (name in declared) == (hint in NUMBERS), name
        if name in declared:
            assert shown[name] == declared[name].of(typing.get_origin(hint) is tuple)


@pytest.mark.parametrize("kind", [*PARTS, Evaluation], ids=lambda kind: kind.__name__)
def test_numbers_beside_their_range_are_refused_and_numbers_in_it_are_not(kind):
    for name, allowed in ranges(kind).items():
        many = typing.get_origin(field_types(kind)[name]) is tuple
        number = int if allowed.whole else float
        step = (allowed.multiple_of or 1) if allowed.whole else 1e-6
        foreign: list[Any] = [True, "text", 1.5 if allowed.whole else None]
        wrong: list[Any] = [] if allowed.whole else [math.nan, math.inf, 1e38]
        right: list[Any] = []
        for bound, inwards in ((allowed.least, step), (allowed.most, -step)):
            if bound is not None:
                wrong.append(bound - inwards)
                right += [bound, bound + inwards]
        for bound, inwards in ((allowed.above, step), (allowed.below, -step)):
            if bound is not None:
                wrong += [bound, bound - inwards]
                right.append(bound + inwards)
        for value in map(number, right):
            value = (value, value) if many else value
            assert getattr(kind(**{name: value}), name) == value
        for value in map(number, wrong):
            with pytest.raises(InvalidField, match=f"^{name} = "):
                kind(**{name: (value, value) if many else value})
        for value in foreign:
            with pytest.raises(
                InvalidField, match="a whole number" if allowed.whole else "a number"
            ):
                allowed.check(name, (value, value) if many else value)
        if many:
            with pytest.raises(InvalidField, match=r"one or more numbers"):
                kind(**{name: ()})


@given(
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.floats(-10, 10),
    st.floats(-10, 10),
)
def test_bounds_are_those_of_arithmetic(value, low, high):
    def accepts(declared: Range) -> bool:
        try:
            declared.check("x", value)
        except InvalidField:
            return False
        return True

    small = abs(value) <= 1e37
    assert accepts(Range(least=low)) == (value >= low and small)
    assert accepts(Range(above=low)) == (value > low and small)
    assert accepts(Range(least=low, most=high)) == (low <= value <= high)
    assert accepts(Range(above=low, below=high)) == (low < value < high)


def test_numbers_of_numpy_are_numbers():
    Range(least=1, whole=True).check("n", np.int64(3))
    Range(above=0).check("x", np.float32(0.5))
    with pytest.raises(InvalidField, match="a whole number"):
        Range(least=1, whole=True).check("n", np.float32(3))


Small = Annotated[float, Range(above=0, below=0.5)]


@dataclasses.dataclass(frozen=True)
class Mine(Part):
    """A part with a range behind a name, one written out, and a check of its own."""

    first: Small = 0.1
    """First."""
    second: Annotated[int, Range(least=2)] = 5
    """Second."""
    third: Count = 1
    """Third."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.third > self.second:
            raise InvalidField("third", self.third, "at most `second`")


def test_parts_of_users_declare_ranges_alike():
    assert [field.allowed for field in describe(Mine).fields] == [
        "above 0, below 0.5",
        "at least 2",
        "at least 1",
    ]
    assert Mine(third=5).third == 5
    for wrong in ({"first": 0.5}, {"second": 1}, {"third": 0}, {"third": 6}):
        with pytest.raises(InvalidField, match=f"^{next(iter(wrong))} = "):
            Mine(**wrong)
