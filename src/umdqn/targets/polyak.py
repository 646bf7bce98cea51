"""A moving average of the network."""

from __future__ import annotations

import dataclasses

import jax
from jaxtyping import Array, Int, PyTree

from umdqn.parts.ranges import Share
from umdqn.targets.target import TargetUpdate


@dataclasses.dataclass(frozen=True)
class Polyak(TargetUpdate):
    """Move the parameters a small share of the way with every update."""

    rate: Share = 0.005
    """Share of the way that one update moves the target network."""

    def update(
        self, params: PyTree, target_params: PyTree, updates: Int[Array, ""], update_every: int
    ) -> PyTree:
        return jax.tree.map(lambda new, old: old + self.rate * (new - old), params, target_params)
