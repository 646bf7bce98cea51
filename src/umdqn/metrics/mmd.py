"""The maximum mean discrepancy of MMDQN."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Annotated, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from umdqn.laws.support import Support
from umdqn.laws.trained import TrainedLaw, View
from umdqn.metrics.metric import Comparison, Metric
from umdqn.metrics.quantile_huber import inside
from umdqn.numerics.products import weighted_sum
from umdqn.parts.ranges import Range
from umdqn.specs import Key


@dataclasses.dataclass(frozen=True)
class Mmd(Metric):
    """`E k(X, X') - 2 E k(X, Y) + E k(Y, Y')` with `k(x, y) = sum_h exp(-(x - y)^2 / h)`."""

    large: ClassVar[bool] = True

    bandwidths: Annotated[tuple[float, ...], Range(above=0)] = (
        1.0,
        2.0,
        3.0,
        4.0,
        5.0,
        6.0,
        7.0,
        8.0,
        9.0,
        10.0,
    )
    """Bandwidths h of the kernels, in squared units of the return."""

    def comparisons(self) -> Mapping[View, Comparison]:
        return {"quantile": _Discrepancy(self)}


@dataclasses.dataclass(frozen=True)
class _Discrepancy(Comparison):
    """The discrepancy of particles."""

    metric: Mmd

    def draw(self, key: Key) -> Float[Array, "points"]:
        return inside(self.metric.unit_points(key))

    def __call__(
        self,
        target: TrainedLaw,
        prediction: TrainedLaw,
        points: Float[Array, "points"],
        support: Support,
    ) -> Float[Array, ""]:
        own, theirs = prediction.particles(points), target.particles(points)
        x, y = own.positions / support.unit, theirs.positions / support.unit

        def energy(a: Array, b: Array) -> Array:
            squares = (a[:, None] - b) ** 2
            kernels = (jnp.exp(squares * (-1.0 / h)) for h in self.metric.bandwidths)
            return sum(kernels, jnp.float32(0))

        return (
            weighted_sum(own.weights, energy(x, x), own.weights)
            - 2 * weighted_sum(own.weights, energy(x, y), theirs.weights)
            + weighted_sum(theirs.weights, energy(y, y), theirs.weights)
        )
