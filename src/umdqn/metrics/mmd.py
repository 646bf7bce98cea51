"""The maximum mean discrepancy of MMDQN."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from umdqn.laws import Law, View
from umdqn.metrics.metric import Metric, unit_points
from umdqn.metrics.wasserstein import inside
from umdqn.types import Domain, Key, check


@dataclasses.dataclass(frozen=True)
class Mmd(Metric):
    """`E k(X, X') - 2 E k(X, Y) + E k(Y, Y')` with `k(x, y) = sum_h exp(-(x - y)^2 / h)`."""

    needs: ClassVar[frozenset[View]] = frozenset({"quantile"})

    bandwidths: tuple[float, ...] = tuple(float(h) for h in range(1, 11))
    """Bandwidths h of the kernels, in squared units of the return."""

    def __post_init__(self) -> None:
        super().__post_init__()
        positive = len(self.bandwidths) > 0 and min(self.bandwidths) > 0
        check(positive, "bandwidths", self.bandwidths, "at least one, all above 0")

    def draw(self, key: Key, domain: Domain) -> Float[Array, "points"]:
        return inside(unit_points(key, self.points, self.sampling))

    def __call__(
        self, target: Law, prediction: Law, points: Float[Array, "points"], domain: Domain
    ) -> Float[Array, ""]:
        x, x_weights = prediction.particles(points)
        y, y_weights = target.particles(points)

        def energy(a: Array, b: Array) -> Array:
            squares = (a[:, None] - b) ** 2
            return sum((jnp.exp(squares * (-1.0 / h)) for h in self.bandwidths), jnp.float32(0))

        return (
            x_weights @ energy(x, x) @ x_weights
            - 2 * x_weights @ energy(x, y) @ y_weights
            + y_weights @ energy(y, y) @ y_weights
        )
