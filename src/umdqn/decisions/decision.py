"""What a decision rule is: a number for each law, of which the greedy choice takes the largest."""

from __future__ import annotations

import abc
import dataclasses

from jaxtyping import Array, Float

from umdqn.laws.law import Law
from umdqn.parts.part import Part


@dataclasses.dataclass(frozen=True)
class Decision(Part, abc.ABC):
    """What a greedy choice compares; one rule for acting, targets, evaluation and accuracy."""

    @abc.abstractmethod
    def scores(self, laws: Law) -> Float[Array, "*laws"]:
        """Return how desirable each law is."""
