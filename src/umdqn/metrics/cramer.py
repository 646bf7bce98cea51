"""The Cramer distance of UMDQN-C."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from umdqn.laws import Law, Uniform, View
from umdqn.metrics.metric import MetricOnReturns
from umdqn.types import Domain


@dataclasses.dataclass(frozen=True)
class Cramer(MetricOnReturns):
    """`(int (F - G)^2 dz)^(1/2)` over the domain, or its square."""

    needs: ClassVar[frozenset[View]] = frozenset({"cdf"})

    root: bool = True
    """The paper's form takes the root of each transition's integral. The square's gradient is
    unbiased under sampled transitions, the root's is not."""

    def terminal(self, law: Law, reward: Float[Array, ""], domain: Domain) -> Law:
        """A steep smooth step."""
        return Uniform(reward, jnp.asarray(2 * domain.width / self.points))

    def __call__(
        self, target: Law, prediction: Law, points: Float[Array, "points"], domain: Domain
    ) -> Float[Array, ""]:
        gap = target.cdf(points) - prediction.cdf(points)
        squared = domain.width * jnp.mean(gap**2)
        if not self.root:
            return squared
        # The root has no gradient at zero: there it is taken as zero.
        equal = squared == 0
        return jnp.where(equal, 0.0, jnp.sqrt(jnp.where(equal, 1.0, squared)))
