"""Experience replay, first in first out, as a value."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from umdqn.types import Key, Transition, check_count


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
    """How much is remembered, and how it is used."""

    capacity: int = 10_000
    batch_size: int = 32
    warmup: int = 1_000
    """Steps of random actions before the first update."""

    def __post_init__(self) -> None:
        for field in ("capacity", "batch_size", "warmup"):
            check_count(field, getattr(self, field))


class Replay(NamedTuple):
    """A ring of transitions; `added` counts all that ever came in."""

    observations: Float[Array, "capacity ..."]
    next_observations: Float[Array, "capacity ..."]
    numbers: Float[Array, "capacity 3"]
    """Action, reward and discount."""
    added: Int[Array, ""]

    @classmethod
    def empty(cls, observation: Float[Array, "..."], capacity: int) -> Replay:
        """Room for `capacity` transitions with observations like this one."""
        # Two arrays, not one twice: each is updated in place.
        rings = (jnp.zeros((capacity, *observation.shape), observation.dtype) for _ in range(2))
        return cls(next(rings), next(rings), jnp.zeros((capacity, 3)), jnp.int32(0))

    def add(self, seen: Transition) -> Replay:
        """Store a transition in place of the oldest."""
        slot = self.added % self.numbers.shape[0]
        numbers = jnp.stack([seen.action.astype(jnp.float32), seen.reward, seen.discount])

        def put(ring: Array, row: Array) -> Array:
            return jax.lax.dynamic_update_index_in_dim(ring, row, slot, 0)

        return Replay(
            put(self.observations, seen.observation),
            put(self.next_observations, seen.next_observation),
            put(self.numbers, numbers),
            self.added + 1,
        )

    def sample(self, key: Key, count: int) -> Transition:
        """Transitions drawn uniformly with replacement."""
        stored = jnp.minimum(self.added, self.numbers.shape[0])
        return self.rows(jax.random.randint(key, (count,), 0, stored))

    def rows(self, chosen: Int[Array, "count"]) -> Transition:
        """The transitions in the given slots."""
        action, reward, discount = self.numbers[chosen].T
        return Transition(
            self.observations[chosen],
            action.astype(jnp.int32),
            reward,
            discount,
            self.next_observations[chosen],
        )
