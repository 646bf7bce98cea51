"""Laws given by their quantile function: the QF representation."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from umdqn.laws.particles import Particles
from umdqn.laws.support import Support
from umdqn.laws.tabled import TabledLaw
from umdqn.laws.trained import TrainedLaw
from umdqn.numerics.products import product
from umdqn.numerics.table import MonotoneTable

# Mass beyond either end of the table, and how far it reaches in units of half the support.
_TAIL_MASS = 1e-4
_TAIL_REACH = 0.05


def shape_moments(table: MonotoneTable) -> tuple[Float[Array, "*laws"], Float[Array, "*laws"]]:
    """Return mean and variance of `G(U)`, U uniform on [-1, 1], by the trapezoid rule."""
    weights = np.full(table.intervals + 1, 1 / table.intervals, np.float32)
    weights[[0, -1]] /= 2
    mean = product(table.heights, weights)
    return mean, product((table.heights - mean[..., None]) ** 2, weights)


class QuantileLaw(TabledLaw):
    """`F^{-1}(tau) = G(2 tau - 1)`, scaled back from units of the support.

    All but a ten-thousandth of the mass lies between the quantiles at 0 and 1; that much is in an
    exponential tail at either end, so that every return has a density and a metric on densities can
    move a law that has missed its target. Quantile regression trains G itself.
    """

    table: MonotoneTable
    support: Support

    def _shape_mean(self) -> Float[Array, "*laws"]:
        # The tails stretch as far below as above: they count like mass at the ends.
        inside = (1 - 2 * _TAIL_MASS) * self.table.integral() / 2
        ends = self.table.heights[..., 0] + self.table.heights[..., -1]
        return inside + _TAIL_MASS * ends

    @classmethod
    def of(cls, table: MonotoneTable, support: Support) -> QuantileLaw:
        """Return the law on a support; with the moments of an open one."""
        if support.open:
            support = support.matched(*shape_moments(table))
        return cls(table, support)

    @property
    def _reach(self) -> Float[Array, ""]:
        return _TAIL_REACH * self.support.half_width

    def _function(self, tau: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return self.support.from_unit(self.table(2 * tau - 1))

    def _quantile(self, tau: Float[Array, "*points"]) -> Float[Array, "*points"]:
        inside = self._function(jnp.clip((tau - _TAIL_MASS) / (1 - 2 * _TAIL_MASS), 0.0, 1.0))
        below = jnp.log(jnp.minimum(tau / _TAIL_MASS, 1.0))
        above = -jnp.log(jnp.minimum((1 - tau) / _TAIL_MASS, 1.0))
        return inside + self._reach * (below + above)

    def _cdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        fraction, below, above = self._locate(z)
        inside = _TAIL_MASS + (1 - 2 * _TAIL_MASS) * fraction
        return inside - _TAIL_MASS * (1 - jnp.exp(-below)) + _TAIL_MASS * (1 - jnp.exp(-above))

    def _log_pdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        fraction, below, above = self._locate(z)
        slope = 2 * self.support.half_width * self.table.slope(2 * fraction - 1)
        inside = jnp.log(1 - 2 * _TAIL_MASS) - jnp.log(slope)
        tail = jnp.log(_TAIL_MASS / self._reach) - below - above
        return jnp.where((below > 0) | (above > 0), tail, inside)

    def _locate(
        self, z: Float[Array, "*points"]
    ) -> tuple[Float[Array, "*points"], Float[Array, "*points"], Float[Array, "*points"]]:
        """The fraction between the ends, and how many reaches below and above them z lies."""
        # In units of the support: far from 0, returns are too coarse for narrow laws.
        x, low, high = self.support.to_unit(z), self.table.heights[0], self.table.heights[-1]
        fraction = (self.table.inverse(jnp.clip(x, low, high)) + 1) / 2
        below, above = jnp.maximum(low - x, 0.0), jnp.maximum(x - high, 0.0)
        return jnp.clip(fraction, 0.0, 1.0), below / _TAIL_REACH, above / _TAIL_REACH

    def claims(
        self, fractions: Float[Array, "count"]
    ) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
        return fractions, self._function(fractions)

    def particles(self, fractions: Float[Array, "count"]) -> Particles:
        weights = jnp.full(fractions.shape, 1.0 / fractions.shape[0])
        return Particles(self._function(fractions), weights, ordered=True, even=True)

    def confined(self) -> TrainedLaw:
        return self if self.support.open else ConfinedQuantileLaw(self)


class ConfinedQuantileLaw(TrainedLaw):
    """The same law with quantiles beyond the support moved to its bounds.

    Bellman targets and decisions see this one: quantiles may lie anywhere, and errors that feed on
    themselves would grow without end.
    """

    law: QuantileLaw

    @property
    def shape(self) -> tuple[int, ...]:
        return self.law.shape

    @property
    def mean(self) -> Float[Array, "*laws"]:
        """By the trapezoid rule, as costs count here: every greedy choice takes it."""
        bounded = jnp.clip(self.law.table.heights, -1.0, 1.0)
        inside = jnp.trapezoid(bounded, dx=self.law.table.spacing, axis=-1) / 2
        return self.law.support.from_unit(inside)

    def _bounded(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return jnp.clip(z, self.law.support.low, self.law.support.high)

    def _quantile(self, tau: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return self._bounded(self.law._quantile(tau))

    def _cdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        low, high = self.law.support.low, self.law.support.high
        return jnp.where(z < low, 0.0, jnp.where(z >= high, 1.0, self.law._cdf(z)))

    def _log_pdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        """That of the law within the support; mass that was moved to a bound has no density."""
        outside = (z < self.law.support.low) | (z > self.law.support.high)
        return jnp.where(outside, -jnp.inf, self.law._log_pdf(z))

    def particles(self, fractions: Float[Array, "count"]) -> Particles:
        inside = jnp.clip(self.law.table(2 * fractions - 1), -1.0, 1.0)
        weights = jnp.full(fractions.shape, 1.0 / fractions.shape[0])
        return Particles(self.law.support.from_unit(inside), weights, ordered=True, even=True)
