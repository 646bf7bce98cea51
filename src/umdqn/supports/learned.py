"""A location and a scale for every state and action, learned with the law."""

from __future__ import annotations

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from umdqn.errors import check
from umdqn.laws.support import Moments, Support
from umdqn.networks.dense import Linear
from umdqn.specs import Domain, Key
from umdqn.supports.support_rule import Placer, SupportRule, Unit

# The unit is at least this share of the mean return: targets may all be equal.
_LEAST_SPREAD = 0.01
# Largest logarithm of a scale in units; far beyond what learning needs.
_LARGEST = 10.0


class _LearnedPlacer(Placer):
    """`centre = unit.centre + unit.scale f`, `half_width = reach * unit.scale exp(g)`."""

    location: Linear
    log_scale: Linear
    reach: float = eqx.field(static=True)
    least: float = eqx.field(static=True)

    def __call__(self, features: Float[Array, "features"], unit: Unit) -> Support:
        features = jax.nn.relu(features)
        location, log_scale = self.location(features), self.log_scale(features)
        # Below `least` the gradient goes on: a scale that has become too small must come back.
        logarithm = jnp.minimum(log_scale, _LARGEST)
        floor = math.log(self.least)
        logarithm = floor + jax.nn.softplus(logarithm - floor)
        std = unit.scale * jnp.exp(logarithm)
        mean = unit.centre + unit.scale * location
        return Support(mean, self.reach * std, Moments(mean, std))

    def rescaled(self, before: Unit, after: Unit) -> Placer:
        ratio = before.scale / after.scale
        shift = (before.centre - after.centre) / after.scale
        location = self.location.changed(
            self.location.weight * ratio, self.location.bias * ratio + shift
        )
        # Standard deviations change with the unit: early ones know nothing but the unit.
        return _LearnedPlacer(location, self.log_scale, self.reach, self.least)


@dataclasses.dataclass(frozen=True)
class Learned(SupportRule):
    """A location and a scale per state and action, learned with the law: no domain is needed."""

    reach: float = 6.0
    """Half of the width of a support, in scales: about standard deviations of the law."""
    least: float = 1e-3
    """Smallest scale, in units of the spread of returns over all states."""
    rate: float = 1e-3
    """Share by which an update moves the common unit of returns."""

    location_floor: float = 0.1
    """L"""
    scale_floor: float = 0.03
    """S"""

    def __post_init__(self) -> None:
        check(self.reach > 0, "reach", self.reach, "above 0")
        check(0 < self.least <= 1, "least", self.least, "above 0, at most 1")
        check(0 < self.rate <= 1, "rate", self.rate, "above 0, at most 1")

    def unit(self, domain: Domain | None, bounded: bool) -> Unit:
        return Unit.of(0.0, 1.0)

    def build(self, features: int, actions: int, key: Key) -> Placer:
        layer = Linear(features, actions, key)
        # Nothing is known yet: every support is the unit.
        layer = layer.changed(0 * layer.weight, layer.bias)
        return _LearnedPlacer(layer, layer, self.reach, self.least)

    def losses(
        self, support: Support, mean: Float[Array, ""], variance: Float[Array, ""], unit: Unit
    ) -> Float[Array, ""]:
        assert support.moments is not None
        own, std = support.moments
        spread = jax.lax.stop_gradient(std)
        error = mean - own
        location = error**2 / (2 * (spread**2 + (self.location_floor * unit.scale) ** 2))
        # Its gradient in log std is (std^2 - v) / (std^2 + floor^2): the variance is the average v.
        square = jax.lax.stop_gradient(error) ** 2 + variance
        weight = (spread**2 - square) / (spread**2 + (self.scale_floor * unit.scale) ** 2)
        return location + jnp.log(std / spread) * weight

    def follow(self, unit: Unit, means: Float[Array, "batch"]) -> Unit:
        # A plain average at first, then an exponential one.
        share = jnp.maximum(1 / (unit.seen + 1), self.rate)
        gap = jnp.mean(means) - unit.mean
        mean = unit.mean + share * gap
        variance = (1 - share) * (unit.variance + share * gap**2) + share * jnp.var(means)
        scale = jnp.maximum(jnp.sqrt(variance), _LEAST_SPREAD * jnp.abs(mean))
        # Before any reward was seen there is no scale to follow.
        informed = scale > 0
        return Unit(
            jnp.where(informed, mean, unit.centre),
            jnp.where(informed, scale, unit.scale),
            unit.seen + 1,
            mean,
            variance,
        )
