"""The Cramer distance of UMDQN-C."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import jax.numpy as jnp
from jaxtyping import Array, Float

from umdqn.laws.closed import Uniform
from umdqn.laws.law import Law
from umdqn.laws.particles import Particles
from umdqn.laws.support import Support
from umdqn.laws.trained import TrainedLaw, View
from umdqn.metrics.metric import Comparison, Metric, returns_at
from umdqn.metrics.quantile_huber import inside, quantile_huber
from umdqn.numerics.products import weighted_sum
from umdqn.numerics.sorting import sort_data
from umdqn.specs import Key


@dataclasses.dataclass(frozen=True)
class Cramer(Metric):
    """`(int (F - G)^2 dz)^(1/2)` over the support, or its square (in all presets).

    Laws that are trained through their quantiles are compared by the energy distance, which equals
    the integral over the whole line.
    """

    root: bool = True
    """The paper's form takes the root of each transition's integral. The square's gradient is
    unbiased under sampled transitions; the root's is not, and grows without bound where laws are
    nearly points and equal."""

    def comparisons(self) -> Mapping[View, Comparison]:
        return {"cdf": _Cdfs(self), "quantile": _Quantiles(self)}

    def distance(self, squared: Float[Array, ""]) -> Float[Array, ""]:
        """Return the root of a squared distance if `root` asks for it."""
        if not self.root:
            return squared
        # The root has no gradient at zero: there it is taken as zero.
        equal = squared <= 0
        return jnp.where(equal, 0.0, jnp.sqrt(jnp.where(equal, 1.0, squared)))


@dataclasses.dataclass(frozen=True)
class _Cdfs(Comparison):
    """The integral, estimated at returns of the support."""

    metric: Cramer

    def draw(self, key: Key) -> Float[Array, "points"]:
        return self.metric.unit_points(key)

    def terminal(self, reward: Float[Array, ""], support: Support) -> Law | None:
        """A steep ramp."""
        return Uniform(reward, 2 * support.width / self.metric.points)

    def __call__(
        self, target: Law, prediction: Law, points: Float[Array, "points"], support: Support
    ) -> Float[Array, ""]:
        z = returns_at(points, support)
        gap = target.cdf(z) - prediction.cdf(z)
        return self.metric.distance(support.width / support.unit * jnp.mean(gap**2))


@dataclasses.dataclass(frozen=True)
class _Quantiles(Comparison):
    """`E|X - Y| - E|X - X'| / 2 - E|Y - Y'| / 2`, by particles of both laws.

    Exactly 0 for equal laws; with n random fractions it has a bias of W1 / n.
    """

    metric: Cramer

    def draw(self, key: Key) -> Float[Array, "points"]:
        return sort_data(inside(self.metric.unit_points(key)))

    def __call__(
        self,
        target: TrainedLaw,
        prediction: TrainedLaw,
        points: Float[Array, "points"],
        support: Support,
    ) -> Float[Array, ""]:
        own, theirs = prediction.particles(points), target.particles(points).sorted()
        # Quantile regression at one half weighs distances by one half.
        halves = jnp.full(own.positions.shape, 0.5)
        across = _expected_gap(own, halves, theirs)
        squared = across - (_mean_gap(own) + _mean_gap(theirs)) / 2
        return self.metric.distance(squared / support.unit)


def _expected_gap(own: Particles, halves: Float[Array, "n"], theirs: Particles) -> Float[Array, ""]:
    """`E|X - Y|`; the particles of Y are in increasing order."""
    if own.even:
        count = own.positions.shape[0]
        loss = quantile_huber(own.positions, halves, theirs.positions, theirs.weights, 0.0)
        return 2 * loss / count
    gaps = jnp.abs(own.positions[:, None] - theirs.positions)
    return weighted_sum(own.weights, gaps, theirs.weights)


def _mean_gap(particles: Particles) -> Float[Array, ""]:
    """`E|X - X'|`, from positions in increasing order.

    Each particle is the larger one of the pairs with all before it and the smaller one of those
    with all after it.
    """
    positions, weights = particles.positions, particles.weights
    if not particles.ordered:
        order = jnp.argsort(positions)
        positions, weights = positions[order], weights[order]
    up_to = jnp.cumsum(weights)
    balance = 2 * up_to - weights - up_to[-1]
    return 2 * jnp.sum(weights * balance * positions)
