"""Specifications that every package shares: domains of returns, observations, environments."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np

from umdqn.errors import check

Key = jax.Array
"""A typed JAX random key."""

AnyArray = jax.Array | np.ndarray
"""An array of JAX or of NumPy."""

UNBOUNDED = 3.4e38
"""Stands for "no bound": finite, so that JSON can hold it."""


@dataclasses.dataclass(frozen=True)
class Domain:
    """The interval [z_min, z_max] of returns on which laws are resolved (appendix E)."""

    low: float
    high: float

    def __post_init__(self) -> None:
        bounded = all(abs(bound) < float("inf") for bound in (self.low, self.high))
        check(bounded, "domain", (self.low, self.high), "both bounds must be finite numbers")
        check(self.low < self.high, "domain", (self.low, self.high), "z_min must be below z_max")

    def share_outside(self, returns: np.ndarray) -> float:
        """Return the share of some returns that lie outside of the domain."""
        return float(np.mean((returns < self.low) | (returns > self.high)))


@dataclasses.dataclass(frozen=True)
class Observation:
    """Shape, type and bounds of an observation."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: tuple[float, ...] = (-UNBOUNDED,)
    """Lower bound of each entry, or one bound for all."""
    high: tuple[float, ...] = (UNBOUNDED,)
    """Upper bound of each entry, or one bound for all."""
    stack: int = 1
    """Frames that an image stacks on its first axis; replay memories keep each frame once."""

    def __str__(self) -> str:
        kind = "numbers" if len(self.shape) == 1 else self.dtype
        return f"{' x '.join(map(str, self.shape))} {kind}"

    @property
    def is_picture(self) -> bool:
        """Whether observations are images (three axes)."""
        return len(self.shape) == 3


@dataclasses.dataclass(frozen=True)
class EnvSpec:
    """What a learner knows of an environment before the first step."""

    name: str
    family: str
    """Family of environments, which selects the table of hyperparameters (appendix E)."""
    num_actions: int
    observation: Observation
    discount: float
    domain: Domain | None
    """Interval that holds the discounted returns, where known."""
    time_limit: int | None
    """Steps after which the environment truncates an episode, if it does."""
    action_names: tuple[str, ...]
    reward_clip: float | None = None
    """Largest absolute reward that learning sees; scores use raw rewards."""
    first_action: int = 0
    """The environment's number for the first action."""
