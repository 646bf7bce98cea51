"""Mean and standard deviation for every state and action, learned apart from the law's shape."""

from __future__ import annotations

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from umdqn.laws.support import Moments, Support
from umdqn.networks.dense import Linear
from umdqn.parts.ranges import Positive, Share
from umdqn.specs import Domain, Key
from umdqn.supports.support_rule import Placer, SupportRule, TargetMoments, Unit

# The units are at least these shares of the mean return: targets may all be equal.
_LEAST_SCALE = 0.01
_LEAST_DEVIATION = 1e-4
# Discounts beyond 1 - 1e-6 are one in single precision.
_SHORTEST = 1e-6
# Where softplus is 1.
_ONE = math.log(math.e - 1)


class _LearnedPlacer(Placer):
    """`mean = unit.centre + unit.scale f`, `std = unit.deviation softplus(g)`."""

    location: Linear
    spread: Linear
    reach: float = eqx.field(static=True)
    least: float = eqx.field(static=True)

    def __call__(self, features: Float[Array, "features"], unit: Unit) -> Support:
        features = jax.nn.relu(features)
        mean = unit.centre + unit.scale * self.location(features)
        std = unit.deviation * (self.least + jax.nn.softplus(self.spread(features) + _ONE))
        return Support(mean, self.reach * std, Moments(mean, std))

    def rescaled(self, before: Unit, after: Unit) -> Placer:
        """Keep the means while the unit changes; standard deviations change with it."""
        # Before a first return other than 0 the unit is arbitrary: means start at the centre.
        known = before.informed
        ratio = jnp.where(known, before.scale / after.scale, 0.0)
        shift = jnp.where(known, (before.centre - after.centre) / after.scale, 0.0)
        location = self.location.changed(
            self.location.weight * ratio, self.location.bias * ratio + shift
        )
        return _LearnedPlacer(location, self.spread, self.reach, self.least)


@dataclasses.dataclass(frozen=True)
class LearnedSupport(SupportRule):
    """Mean and standard deviation of each law, learned apart from its shape: needs no domain."""

    reach: Positive = 6.0
    """Half of the width of a support, in standard deviations."""
    least: Share = 1e-3
    """Smallest standard deviation, relative to the typical one."""
    rate: Share = 1e-3
    """Share by which an update moves the common units of returns."""
    mean_weight: Positive = 3.0
    """How much the error of the mean counts in the loss, against spread and shape."""
    floor: Positive = 0.3
    """Standard deviation, relative to the typical one, that is added to a law's own in the divisor
    of squared errors: limits how much one rare target changes a law that is nearly a point."""

    def unit(self, domain: Domain | None, bounded: bool) -> Unit:
        return Unit.of(0.0, 1.0)

    def build(self, features: int, actions: int, key: Key) -> Placer:
        layer = Linear(features, actions, key)
        # Nothing is known yet: all means are the centre, all standard deviations typical.
        layer = layer.changed(0 * layer.weight, layer.bias)
        return _LearnedPlacer(layer, layer, self.reach, self.least)

    def loss(self, support: Support, target: TargetMoments, unit: Unit) -> Float[Array, ""]:
        assert support.moments is not None
        mean, std = support.moments
        location = self.mean_weight * (target.mean - mean) ** 2 / (2 * unit.deviation**2)
        # Its gradient in log std is (std^2 - square) / (std^2 + floor^2): zero on average where the
        # variance is that of the targets. The floor limits the effect of a rare target.
        now = jax.lax.stop_gradient(std)
        square = target.error**2 + unit.credible * target.variance
        weight = (now**2 - square) / (now**2 + (self.floor * unit.deviation) ** 2)
        return location + jnp.log(std / now) * weight

    def follow(self, unit: Unit, targets: TargetMoments) -> Unit:
        # Plain averages at first, then exponential ones.
        share = jnp.maximum(1 / (unit.seen + 1), self.rate)
        gap = jnp.mean(targets.mean) - unit.mean
        mean = unit.mean + share * gap
        variance = (1 - share) * (unit.variance + share * gap**2) + share * jnp.var(targets.mean)
        error = unit.error + share * (jnp.mean(targets.error**2) - unit.error)
        kept = unit.kept + share * (jnp.mean(targets.discount**2) - unit.kept)
        claimed = jnp.mean(targets.claimed - targets.variance)
        least = jnp.abs(mean)
        scale = jnp.maximum(jnp.sqrt(variance), _LEAST_SCALE * least)
        # The variance of a return is the sum of its squared, discounted errors.
        deviation = jnp.sqrt(error / jnp.maximum(1 - kept, _SHORTEST))
        deviation = jnp.maximum(deviation, _LEAST_DEVIATION * jnp.maximum(least, scale))
        # Before any reward was seen there is nothing to follow.
        informed = scale > 0
        return Unit(
            jnp.where(informed, mean, unit.centre),
            jnp.where(informed, scale, unit.scale),
            jnp.where(informed, deviation, unit.deviation),
            unit.seen + 1,
            mean,
            variance,
            error,
            kept,
            unit.claimed + share * (claimed - unit.claimed),
        )
