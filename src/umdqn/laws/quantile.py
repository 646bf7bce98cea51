"""Laws given by their quantile function: the QF representation."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from umdqn.laws.law import Law
from umdqn.numerics import MonotoneTable
from umdqn.types import Domain

# Mass beyond either end of the table, and how far it reaches in units of half the domain.
_TAIL_MASS = 1e-4
_TAIL_REACH = 0.05


class QuantileLaw(Law):
    """`F^{-1}(tau) = G(2 tau - 1)`, scaled back from units of the domain.

    The domain sets the scale. Quantiles may lie outside it, but what stands for the law in targets
    and choices counts them at its bounds: else errors that feed on themselves would have no end.
    All but a ten-thousandth of the mass lies between the quantiles at 0 and 1; that much is in an
    exponential tail at either end, so that every return has a density and a metric on densities can
    move a law that has missed its target. Quantile regression trains G itself.
    """

    table: MonotoneTable
    domain: Domain = eqx.field(static=True)

    @property
    def _reach(self) -> float:
        return _TAIL_REACH * self.domain.half_width

    def _function(self, tau: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        return self.domain.from_unit(self.table(2 * jnp.asarray(tau) - 1))

    def regressed(
        self, fractions: Float[Array, "count"]
    ) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
        return fractions, self._function(fractions)

    def confined(self) -> Law:
        return _ConfinedQuantileLaw(self.table, self.domain)

    def quantile(self, tau: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        tau = jnp.asarray(tau)
        inside = self._function(jnp.clip((tau - _TAIL_MASS) / (1 - 2 * _TAIL_MASS), 0.0, 1.0))
        below = jnp.log(jnp.minimum(tau / _TAIL_MASS, 1.0))
        above = -jnp.log(jnp.minimum((1 - tau) / _TAIL_MASS, 1.0))
        return inside + self._reach * (below + above)

    def cdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        fraction, below, above = self._locate(z)
        inside = _TAIL_MASS + (1 - 2 * _TAIL_MASS) * fraction
        return inside - _TAIL_MASS * (1 - jnp.exp(-below)) + _TAIL_MASS * (1 - jnp.exp(-above))

    def log_pdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        fraction, below, above = self._locate(z)
        slope = 2 * self.domain.half_width * self.table.slope(2 * fraction - 1)
        inside = jnp.log(1 - 2 * _TAIL_MASS) - jnp.log(slope)
        tail = jnp.log(_TAIL_MASS / self._reach) - below - above
        return jnp.where((below > 0) | (above > 0), tail, inside)

    def _locate(
        self, z: Float[ArrayLike, "*points"]
    ) -> tuple[Float[Array, "*points"], Float[Array, "*points"], Float[Array, "*points"]]:
        """The fraction between the ends, and how many reaches below and above them z lies."""
        z = jnp.asarray(z)
        low, high = self._function(jnp.asarray([0.0, 1.0]))
        fraction = (self.table.inverse(self.domain.to_unit(jnp.clip(z, low, high))) + 1) / 2
        below, above = jnp.maximum(low - z, 0.0), jnp.maximum(z - high, 0.0)
        return jnp.clip(fraction, 0.0, 1.0), below / self._reach, above / self._reach

    @property
    def mean(self) -> Float[Array, "*laws"]:
        """The tails stretch as far below as above: they count like mass at the ends."""
        inside = (1 - 2 * _TAIL_MASS) * self.table.integral() / 2
        ends = self.table.heights[..., 0] + self.table.heights[..., -1]
        return self.domain.from_unit(inside + _TAIL_MASS * ends)

    @property
    def value(self) -> Float[Array, "*laws"]:
        """The mean, with quantiles beyond the domain at its bounds."""
        bounded = jnp.clip(self.table.heights, -1.0, 1.0)
        return self.domain.from_unit(jnp.trapezoid(bounded, dx=self.table.spacing, axis=-1) / 2)


class _ConfinedQuantileLaw(QuantileLaw):
    """The same, with particles beyond the domain at its bounds."""

    def particles(
        self, fractions: Float[Array, "count"]
    ) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
        positions, weights = super().particles(fractions)
        return jnp.clip(positions, self.domain.low, self.domain.high), weights
