"""The distance of expectations: what DQN minimises."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from umdqn.laws import Law, View
from umdqn.metrics.metric import Metric
from umdqn.types import Domain, Key, check


@dataclasses.dataclass(frozen=True)
class Mean(Metric):
    """Huber's loss of the difference of the means: quadratic below kappa, linear above."""

    needs: ClassVar[frozenset[View]] = frozenset({"mean"})

    kappa: float = 1.0
    """Where the loss turns linear; the slope there is 1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.kappa > 0, "kappa", self.kappa, "above 0")

    def draw(self, key: Key, domain: Domain) -> PyTree[Float[Array, "points"]]:
        """Expectations are compared as a whole."""
        return None

    def __call__(
        self, target: Law, prediction: Law, points: PyTree[Float[Array, "points"]], domain: Domain
    ) -> Float[Array, ""]:
        error = jnp.abs(target.mean - prediction.mean)
        small = jnp.minimum(error, self.kappa)
        return small * (error - small / 2) / self.kappa
