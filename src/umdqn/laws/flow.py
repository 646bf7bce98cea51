"""Laws whose CDF is a link function of an increasing function: the PDF and CDF representations."""

from __future__ import annotations

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr, logit, ndtri
from jaxtyping import Array, Float

from umdqn.laws.particles import Particles
from umdqn.laws.support import Support
from umdqn.laws.tabled import TabledLaw
from umdqn.numerics.products import product
from umdqn.numerics.table import MonotoneTable


class Link(eqx.Module):
    """A fixed law of the latent variable y = G(x), by its views."""

    @abc.abstractmethod
    def cdf(self, y: Float[Array, "..."]) -> Float[Array, "..."]: ...

    @abc.abstractmethod
    def quantile(self, tau: Float[Array, "..."]) -> Float[Array, "..."]: ...

    @abc.abstractmethod
    def log_pdf(self, y: Float[Array, "..."]) -> Float[Array, "..."]: ...

    @abc.abstractmethod
    def excess(self, y: Float[Array, "..."]) -> Float[Array, "..."]:
        """`int_y^inf (1 - cdf)`: the expected excess over y."""


class Logistic(Link):
    """The sigmoid of UMDQN-C."""

    def cdf(self, y: Float[Array, "..."]) -> Float[Array, "..."]:
        # XLA evaluates tanh several times faster than the logistic function.
        return 0.5 + 0.5 * jnp.tanh(0.5 * y)

    def quantile(self, tau: Float[Array, "..."]) -> Float[Array, "..."]:
        return logit(tau)

    def log_pdf(self, y: Float[Array, "..."]) -> Float[Array, "..."]:
        return -jnp.abs(y) - 2 * jnp.log1p(jnp.exp(-jnp.abs(y)))

    def excess(self, y: Float[Array, "..."]) -> Float[Array, "..."]:
        return jax.nn.softplus(-y)


class Normal(Link):
    """The standard normal latent of UMDQN-KL's normalizing flow."""

    def cdf(self, y: Float[Array, "..."]) -> Float[Array, "..."]:
        # Exact to float32 in absolute terms, and half the time of a tail-exact `ndtr`.
        return 0.5 + 0.5 * jax.lax.erf(y * np.float32(0.5**0.5))

    def quantile(self, tau: Float[Array, "..."]) -> Float[Array, "..."]:
        return ndtri(tau)

    def log_pdf(self, y: Float[Array, "..."]) -> Float[Array, "..."]:
        return -0.5 * y**2 - 0.5 * jnp.log(2 * jnp.pi)

    def excess(self, y: Float[Array, "..."]) -> Float[Array, "..."]:
        return jnp.maximum(jnp.exp(self.log_pdf(y)) - y * jnp.exp(log_ndtr(-y)), 0.0)


def shape_mean(table: MonotoneTable, link: Link) -> Float[Array, "*laws"]:
    """Return the mean of `link(G(x))`: `1 - int F` over [-1, 1] trapezoids and tails."""
    weights, _ = _trapezoid(table)
    above, below = _tails(table, link)
    return 1 - product(link.cdf(table.heights), weights) + above - below


def shape_moments(
    table: MonotoneTable, link: Link
) -> tuple[Float[Array, "*laws"], Float[Array, "*laws"]]:
    """Return mean and variance of `link(G(x))`: `1 - int F` and `1 - int 2 x F` over [-1, 1].

    By the trapezoid rule, plus both tails: the first moment in closed form, the second nearly.
    """
    weights, nodes = _trapezoid(table)
    integrals = product(link.cdf(table.heights), np.stack([weights, 2 * weights * nodes], -1))
    above, below = _tails(table, link)
    mean = 1 - integrals[..., 0] + above - below
    tails = above * (1 + 1 / table.right) + below * (1 + 1 / table.left)
    return mean, 1 - integrals[..., 1] + 2 * tails - mean**2


def _trapezoid(table: MonotoneTable) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of the trapezoid rule on the nodes of a table, and the nodes."""
    weights = np.full(table.intervals + 1, table.spacing, np.float32)
    weights[[0, -1]] /= 2
    return weights, np.linspace(-1, 1, table.intervals + 1, dtype=np.float32)


def _tails(table: MonotoneTable, link: Link) -> tuple[Float[Array, "*laws"], Float[Array, "*laws"]]:
    """Return the expected excess over 1, and that under -1."""
    above = link.excess(table.heights[..., -1]) / table.right
    below = link.excess(-table.heights[..., 0]) / table.left
    return above, below


class FlowLaw(TabledLaw):
    """`F(z) = link(G(x))` with x the return scaled to [-1, 1]; a valid law on the whole line."""

    table: MonotoneTable
    support: Support
    link: Link = eqx.field(static=True)

    @classmethod
    def of(cls, table: MonotoneTable, support: Support, link: Link) -> FlowLaw:
        """Return the law on a support; with the moments of an open one."""
        if support.open:
            support = support.matched(*shape_moments(table, link))
        return cls(table, support, link)

    def _shape_mean(self) -> Float[Array, "*laws"]:
        return shape_mean(self.table, self.link)

    def _cdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return self.link.cdf(self.table(self.support.to_unit(z)))

    def _log_pdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        x = self.support.to_unit(z)
        steepness = jnp.log(self.table.slope(x)) - jnp.log(self.support.half_width)
        return self.link.log_pdf(self.table(x)) + steepness

    def _quantile(self, tau: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return self.support.from_unit(self.table.inverse(self.link.quantile(tau)))

    def claims(
        self, fractions: Float[Array, "count"]
    ) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
        return fractions, self._quantile(fractions)

    def cells(self, fractions: Float[Array, "count"]) -> Particles:
        """The masses of the table's cells, at their middles; tails count at the ends."""
        reached = self.link.cdf(self.table.heights)
        reached = jnp.concatenate([jnp.zeros(1), reached[1:-1], jnp.ones(1)])
        spacing = self.table.spacing
        middles = np.linspace(-1 + spacing / 2, 1 - spacing / 2, self.table.intervals)
        positions = self.support.from_unit(middles.astype(np.float32))
        return Particles(positions, jnp.diff(reached), ordered=True)

    def particles(self, fractions: Float[Array, "count"]) -> Particles:
        weights = jnp.full(fractions.shape, 1.0 / fractions.shape[0])
        return Particles(self._quantile(fractions), weights, ordered=True, even=True)
