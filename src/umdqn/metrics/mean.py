"""The distance of expectations: what DQN minimises."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from umdqn.laws.law import Law
from umdqn.laws.support import Support
from umdqn.laws.trained import View
from umdqn.metrics.metric import Comparison, Metric
from umdqn.parts.ranges import Positive
from umdqn.specs import Key


@dataclasses.dataclass(frozen=True)
class Mean(Metric):
    """Huber's loss of the difference of the means: quadratic below kappa, linear above."""

    kappa: Positive = 1.0
    """Where the loss turns linear; the slope there is 1."""

    def comparisons(self) -> Mapping[View, Comparison]:
        return {"mean": _Means(self)}


@dataclasses.dataclass(frozen=True)
class _Means(Comparison):
    """The difference of the means."""

    metric: Mean

    def draw(self, key: Key) -> PyTree[Float[Array, "points"]]:
        """Nothing: expectations are compared as a whole."""
        return None

    def __call__(
        self,
        target: Law,
        prediction: Law,
        points: PyTree[Float[Array, "points"]],
        support: Support,
    ) -> Float[Array, ""]:
        error = jnp.abs(target.mean - prediction.mean) / support.unit
        small = jnp.minimum(error, self.metric.kappa)
        return small * (error - small / 2) / self.metric.kappa
