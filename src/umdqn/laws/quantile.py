"""Laws given by their quantile function: the QF representation."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from umdqn.laws.law import Law
from umdqn.numerics import MonotoneTable
from umdqn.types import Domain


class QuantileLaw(Law):
    """`F^{-1}(tau) = G(2 tau - 1)`, scaled back from units of the domain.

    The domain only sets the scale: quantiles may lie outside it. All mass lies between the
    quantiles at 0 and 1.
    """

    table: MonotoneTable
    domain: Domain = eqx.field(static=True)

    def quantile(self, tau: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        return self.domain.from_unit(self.table(2 * jnp.clip(tau, 0.0, 1.0) - 1))

    def cdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        return jnp.clip((self._fraction(z) + 1) / 2, 0.0, 1.0)

    def log_pdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        x = self._fraction(z)
        inside = -jnp.log(2 * self.domain.half_width * self.table.slope(x))
        return jnp.where(jnp.abs(x) <= 1, inside, -jnp.inf)

    def _fraction(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        return self.table.inverse(self.domain.to_unit(jnp.asarray(z)))

    @property
    def mean(self) -> Float[Array, "*laws"]:
        return self.domain.from_unit(self.table.integral() / 2)
