"""The Cramer distance of UMDQN-C."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from umdqn.laws import Law, QuantileLaw, Uniform, View
from umdqn.metrics.metric import MetricOnReturns
from umdqn.metrics.wasserstein import inside, quantile_huber
from umdqn.numerics import sort_data
from umdqn.types import Domain


@dataclasses.dataclass(frozen=True)
class Cramer(MetricOnReturns):
    """`(int (F - G)^2 dz)^(1/2)` over the domain, or its square.

    Where a law is its quantile function, the distance is taken as the energy distance over
    quantiles, which equals the integral over the whole line: a CDF that is an inverse has no
    gradient where the law has no mass.
    """

    needs: ClassVar[frozenset[View]] = frozenset({"cdf"})

    root: bool = True
    """The paper's form takes the root of each transition's integral. The square's gradient is
    unbiased under sampled transitions, the root's is not, and grows without bound where laws are
    nearly points and equal."""

    def terminal(self, law: Law, reward: Float[Array, ""], domain: Domain) -> Law | None:
        """A steep smooth step; quantiles can be constant."""
        if isinstance(law, QuantileLaw):
            return None
        return Uniform(reward, jnp.asarray(2 * domain.width / self.points))

    def __call__(
        self, target: Law, prediction: Law, points: Float[Array, "points"], domain: Domain
    ) -> Float[Array, ""]:
        if isinstance(prediction, QuantileLaw):
            squared = _energy_distance(target, prediction, (points - domain.low) / domain.width)
        else:
            gap = target.cdf(points) - prediction.cdf(points)
            squared = domain.width * jnp.mean(gap**2)
        if not self.root:
            return squared
        # The root has no gradient at zero: there it is taken as zero.
        equal = squared <= 0
        return jnp.where(equal, 0.0, jnp.sqrt(jnp.where(equal, 1.0, squared)))


def _energy_distance(
    target: Law, prediction: Law, fractions: Float[Array, "points"]
) -> Float[Array, ""]:
    """`E|X - Y| - E|X - X'| / 2 - E|Y - Y'| / 2`, by quantiles at the same fractions of both.

    Zero at equality whatever the fractions; drawn at random, n of them bias it by W1 / n. The
    target's particles are equally likely, as those of a quantile function are.
    """
    fractions = sort_data(inside(fractions))
    _, own = prediction.regressed(fractions)
    theirs, weights = target.sorted_particles(fractions)
    # Quantile regression at one half weighs distances by one half.
    halves = jnp.full(own.shape, 0.5)
    across = 2 * quantile_huber(own, halves, theirs, weights, 0.0) / own.shape[0]
    return across - (_mean_gap(own) + _mean_gap(theirs)) / 2


def _mean_gap(values: Float[Array, "n"]) -> Float[Array, ""]:
    """`E|X - X'|` of equally likely values in increasing order: each counts once for every other.

    The k-th of n is the larger one of k - 1 pairs and the smaller one of n - k.
    """
    count = values.shape[0]
    balance = 2 * np.arange(count, dtype=np.float32) - (count - 1)
    return 2 * jnp.mean(balance * values) / count
