"""The base class of everything a user can choose by name."""

from __future__ import annotations

import dataclasses
from typing import Any

from umdqn.parts.ranges import check_ranges


@dataclasses.dataclass(frozen=True)
class Part:
    """A component of an agent, chosen by name and configured by its fields.

    Subclasses are frozen dataclasses. Every field has a default and a docstring: configuration,
    command line, manifest and reference documentation are derived from them. Fields hold plain data
    (numbers, text, tuples), so that equal parts are equal by value and compile once. A range that
    a field's type declares, `Annotated[float, Range(above=0)]`, is checked and is in the help text.
    """

    def __post_init__(self) -> None:
        """Check declared ranges; subclasses with checks of their own call this first."""
        check_ranges(self)

    @classmethod
    def adopt(cls, value: Any, name: str | None = None) -> Part | None:
        """Wrap a foreign object, such as an Optax optimiser, as a part; None if it does not fit.

        The part refers to the object by `name`, or by one that `objects.keep` gives.
        """
        return None

    @classmethod
    def fault(cls) -> str | None:
        """Return what the class lacks besides abstract methods and defaults, if anything."""
        return None
