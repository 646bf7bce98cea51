"""Exploration schedules."""

from __future__ import annotations

import dataclasses
import math

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from umdqn.types import check, check_count


@dataclasses.dataclass(frozen=True)
class EpsilonGreedy:
    """`epsilon = end + (start - end) exp(-step / decay)`."""

    start: float = 1.0
    end: float = 0.01
    decay: float = 10_000.0
    """Steps in which the distance to `end` shrinks by a factor e."""
    repeat: int = 1
    """Steps that a random choice lasts: more than 1 where single steps lead nowhere."""

    def __post_init__(self) -> None:
        check(0 <= self.start <= 1, "start", self.start, "from 0 to 1")
        check(0 <= self.end <= 1, "end", self.end, "from 0 to 1")
        check(self.decay > 0, "decay", self.decay, "above 0")
        check_count("repeat", self.repeat)

    def epsilon(self, step: Int[Array, ""]) -> Float[Array, ""]:
        """Probability of a random action at `step`."""
        return self.end + (self.start - self.end) * jnp.exp(-step / self.decay)

    def epsilon_on_host(self, step: int) -> float:
        """The same outside of compiled programs."""
        return self.end + (self.start - self.end) * math.exp(-step / self.decay)
