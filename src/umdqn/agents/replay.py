"""Experience replay, first in first out, as a value."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from umdqn.types import Key, Transition, check


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
    """How much is remembered, and how it is used."""

    capacity: int = 10_000
    batch_size: int = 32
    warmup: int = 1_000
    """Steps of random actions before the first update."""

    def __post_init__(self) -> None:
        check(self.capacity >= 1, "capacity", self.capacity, "at least 1")
        check(self.batch_size >= 1, "batch_size", self.batch_size, "at least 1")
        check(self.warmup >= 1, "warmup", self.warmup, "at least 1")


class Replay(NamedTuple):
    """A ring of transitions; `added` counts all that ever came in."""

    ring: Transition
    added: Int[Array, ""]

    @classmethod
    def empty(cls, example: Transition, capacity: int) -> Replay:
        """Room for `capacity` transitions like `example`."""
        ring = jax.tree.map(lambda leaf: jnp.zeros((capacity, *leaf.shape), leaf.dtype), example)
        return cls(ring, jnp.int32(0))

    def add(self, transition: Transition) -> Replay:
        """Store a transition in place of the oldest."""
        slot = self.added % self.ring.reward.shape[0]
        ring = jax.tree.map(lambda ring, new: ring.at[slot].set(new), self.ring, transition)
        return Replay(ring, self.added + 1)

    def sample(self, key: Key, count: int) -> Transition:
        """Transitions drawn uniformly with replacement."""
        stored = jnp.minimum(self.added, self.ring.reward.shape[0])
        chosen = jax.random.randint(key, (count,), 0, stored)
        return jax.tree.map(lambda ring: ring[chosen], self.ring)
