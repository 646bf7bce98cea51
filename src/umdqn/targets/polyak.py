"""A moving average of the network."""

from __future__ import annotations

import dataclasses

import jax
from jaxtyping import Array, Int, PyTree

from umdqn.errors import check_number
from umdqn.targets.target import TargetUpdate


@dataclasses.dataclass(frozen=True)
class Polyak(TargetUpdate):
    """Move the parameters a small share of the way with every update."""

    rate: float = 0.005
    """Share of the way that one update moves the target network."""

    def __post_init__(self) -> None:
        check_number("rate", self.rate, above=0, most=1)

    def update(
        self, params: PyTree, target_params: PyTree, updates: Int[Array, ""], update_every: int
    ) -> PyTree:
        return jax.tree.map(lambda new, old: old + self.rate * (new - old), params, target_params)
