"""Laws in closed form: exact laws of the grid world, and smoothed laws of terminal states."""

from __future__ import annotations

import jax.numpy as jnp
from jax.scipy.special import logsumexp, ndtr
from jaxtyping import Array, Float

from umdqn.laws.law import Law
from umdqn.numerics.inversion import invert_monotone
from umdqn.numerics.products import product


class GaussianMixture(Law):
    """`sum_i weights_i N(means_i, stds_i^2)`."""

    weights: Float[Array, "*laws components"]
    means: Float[Array, "*laws components"]
    stds: Float[Array, "*laws components"]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.means.shape[:-1]

    @property
    def mean(self) -> Float[Array, "*laws"]:
        return jnp.sum(self.means * self.weights, axis=-1)

    def _cdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return product(ndtr(self._standardise(z)), self.weights)

    def _log_pdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        exponents = -0.5 * self._standardise(z) ** 2 - jnp.log(self.stds * jnp.sqrt(2 * jnp.pi))
        return logsumexp(exponents, axis=-1, b=self.weights)

    def _quantile(self, tau: Float[Array, "*points"]) -> Float[Array, "*points"]:
        low = jnp.min(self.means - 6 * self.stds)
        high = jnp.max(self.means + 6 * self.stds)
        return invert_monotone(self._cdf, tau, low, high)

    def _standardise(self, z: Float[Array, "*points"]) -> Float[Array, "*points components"]:
        return (z[..., None] - self.means) / self.stds

    def _variance(self) -> Float[Array, ""]:
        return product(self.stds**2 + (self.means - self.mean) ** 2, self.weights)

    def _crps(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        """`E|Z - z| - E|Z - Z'| / 2`: differences of Gaussians are Gaussian."""
        off = product(_mean_size(z[..., None] - self.means, self.stds), self.weights)
        stds = jnp.sqrt(self.stds[:, None] ** 2 + self.stds**2)
        spread = product(_mean_size(self.means[:, None] - self.means, stds), self.weights)
        return off - product(spread, self.weights) / 2


def _mean_size(mean: Float[Array, "..."], std: Float[Array, "..."]) -> Float[Array, "..."]:
    """`E|X|` of a Gaussian."""
    y = mean / std
    return mean * (2 * ndtr(y) - 1) + std * jnp.sqrt(2 / jnp.pi) * jnp.exp(-(y**2) / 2)


class Uniform(Law):
    """The uniform law of a width around a centre: a CDF with a large constant slope."""

    centre: Float[Array, "*laws"]
    width: Float[Array, "*laws"]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.centre.shape

    @property
    def mean(self) -> Float[Array, "*laws"]:
        return self.centre

    def _cdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return jnp.clip(0.5 + (z - self.centre) / self.width, 0.0, 1.0)

    def _log_pdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        inside = jnp.abs(z - self.centre) <= self.width / 2
        return jnp.where(inside, -jnp.log(self.width), -jnp.inf)

    def _quantile(self, tau: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return self.centre + (tau - 0.5) * self.width

    def _variance(self) -> Float[Array, ""]:
        return self.width**2 / 12


class Dirac(Law):
    """All mass at one point; its density is infinite there and zero elsewhere."""

    point: Float[Array, "*laws"]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.point.shape

    @property
    def mean(self) -> Float[Array, "*laws"]:
        return self.point

    def _cdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return (z >= self.point).astype(jnp.float32)

    def _log_pdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return jnp.where(z == self.point, jnp.inf, -jnp.inf)

    def _quantile(self, tau: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return jnp.broadcast_to(self.point, tau.shape)

    def _variance(self) -> Float[Array, ""]:
        return jnp.zeros_like(self.point)

    def _cvar(self, alpha: float) -> Float[Array, ""]:
        return self.point


def normal(mean: Float[Array, ""], std: Float[Array, ""] | float) -> GaussianMixture:
    """Return one Gaussian, as a mixture of one."""
    return GaussianMixture(jnp.ones(1), jnp.reshape(mean, 1), jnp.reshape(jnp.asarray(std), 1))
