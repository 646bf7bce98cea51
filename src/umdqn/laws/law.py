"""The law of a random return: a value with views, whatever represents it."""

from __future__ import annotations

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from umdqn.types import Key

# Views that have no closed form integrate the CDF between these two quantiles.
_TAIL = 1e-6
_INTEGRATION_CELLS = 4096


class Law(eqx.Module):
    """A probability distribution on the real line.

    Written for one law; `laws[i]` picks one from a leading axis, over which `mean` and `value` work
    too. Subclasses give `mean`, `cdf`, `quantile` and `log_pdf`; the other views follow from
    these.
    """

    @property
    @abc.abstractmethod
    def mean(self) -> Float[Array, "*laws"]:
        """Expectation of the return."""

    @property
    def value(self) -> Float[Array, "*laws"]:
        """What a greedy choice compares: the mean, or a cheaper estimate of it."""
        return self.mean

    @abc.abstractmethod
    def cdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        """Probability that the return is at most z."""

    def spread_cdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        """The integral of `pdf`: the CDF, unless mass lies at points."""
        return self.cdf(z)

    @abc.abstractmethod
    def log_pdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        """Logarithm of the density at z."""

    @abc.abstractmethod
    def quantile(self, tau: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        """The return below which a share tau of the mass lies."""

    def pdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        """Density at z."""
        return jnp.exp(self.log_pdf(z))

    def sample(self, key: Key, count: int) -> Float[Array, "count"]:
        """Independent draws, by the inverse transform."""
        # An open interval: the quantile at exactly 0 or 1 may be infinite.
        smallest = float(jnp.finfo(jnp.float32).tiny)
        return self.quantile(jax.random.uniform(key, (count,), minval=smallest, maxval=1.0))

    @property
    def variance(self) -> Float[Array, ""]:
        """`E[(Z - mean)^2]`, from `int 2 (z - mean) (1[z > mean] - F(z)) dz`."""
        z = self._grid(1 - _TAIL)
        centred = z - self.mean
        return jnp.trapezoid(2 * centred * ((centred > 0) - self.cdf(z)), z)

    @property
    def std(self) -> Float[Array, ""]:
        """Standard deviation of the return."""
        return jnp.sqrt(jnp.maximum(self.variance, 0.0))

    def cvar(self, alpha: float) -> Float[Array, ""]:
        """Expectation of the worst share alpha of returns, for 0 < alpha <= 1."""
        z = self._grid(min(alpha, 1 - _TAIL))
        return z[-1] - jnp.trapezoid(self.cdf(z), z) / alpha

    def _grid(self, top: float) -> Float[Array, "points"]:
        low, high = self.quantile(jnp.asarray([_TAIL, top]))
        return jnp.linspace(low, high, _INTEGRATION_CELLS + 1)

    def regressed(
        self, fractions: Float[Array, "count"]
    ) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
        """Fractions and the quantiles claimed for them, as quantile regression trains them.

        At the given fractions, or at the law's own. Unlike `quantile`, these may cross.
        """
        return fractions, self.quantile(fractions)

    def confined(self) -> Law:
        """The law as a Bellman target sees it: without what errors alone put beyond a domain."""
        return self

    def particles(
        self, fractions: Float[Array, "count"]
    ) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
        """Positions and weights of points that stand for the law.

        Its quantiles at the given fractions, as it claims them, or its own atoms.
        """
        return self.regressed(fractions)[1], jnp.full(fractions.shape, 1.0 / fractions.shape[0])

    def sorted_particles(
        self, fractions: Float[Array, "count"]
    ) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
        """The particles at increasing fractions in increasing order of position, as data."""
        return self.particles(fractions)

    def __getitem__(self, index: int | Array) -> Law:
        """The law at `index` of a leading axis."""
        return jax.tree.map(lambda leaf: leaf[index], self)
