"""The risk-neutral decision."""

from __future__ import annotations

import dataclasses

from jaxtyping import Array, Float

from umdqn.decisions.decision import Decision
from umdqn.laws.law import Law


@dataclasses.dataclass(frozen=True)
class Mean(Decision):
    """Choose the action of largest expected return."""

    def scores(self, laws: Law) -> Float[Array, "*laws"]:
        return laws.mean
