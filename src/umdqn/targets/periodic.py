"""Copies of the network at regular intervals."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PyTree

from umdqn.parts.ranges import Count
from umdqn.targets.target import TargetUpdate


@dataclasses.dataclass(frozen=True)
class Periodic(TargetUpdate):
    """Copy the parameters every so many environment steps, as DQN does."""

    every: Count = 1_000
    """Environment steps between two copies, rounded down to whole updates."""

    def update(
        self, params: PyTree, target_params: PyTree, updates: Int[Array, ""], update_every: int
    ) -> PyTree:
        due = updates % max(self.every // update_every, 1) == 0
        return jax.tree.map(lambda new, old: jnp.where(due, new, old), params, target_params)
