"""Laws in closed form: the truth of the grid world, and the smoothed laws of terminal states."""

from __future__ import annotations

import jax.numpy as jnp
from jax.scipy.special import logsumexp, ndtr
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from umdqn.laws.law import Law
from umdqn.numerics import invert_monotone


class GaussianMixture(Law):
    """`sum_i weights_i N(means_i, stds_i^2)`."""

    weights: Float[Array, "*laws components"]
    means: Float[Array, "*laws components"]
    stds: Float[Array, "*laws components"]

    def cdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        return ndtr(self._standardise(z)) @ self.weights

    def log_pdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        exponents = -0.5 * self._standardise(z) ** 2 - jnp.log(self.stds * jnp.sqrt(2 * jnp.pi))
        return logsumexp(exponents, axis=-1, b=self.weights)

    def quantile(self, tau: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        low = jnp.min(self.means - 6 * self.stds)
        high = jnp.max(self.means + 6 * self.stds)
        return invert_monotone(self.cdf, tau, low, high)

    def _standardise(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points components"]:
        return (jnp.asarray(z)[..., None] - self.means) / self.stds

    @property
    def mean(self) -> Float[Array, ""]:
        return self.means @ self.weights

    @property
    def variance(self) -> Float[Array, ""]:
        return (self.stds**2 + (self.means - self.mean) ** 2) @ self.weights


class Uniform(Law):
    """The smooth step of width `width` around `centre`: a CDF with a large constant slope."""

    centre: Float[Array, ""]
    width: Float[Array, ""]

    def cdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        return jnp.clip(0.5 + (z - self.centre) / self.width, 0.0, 1.0)

    def log_pdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        inside = jnp.abs(z - self.centre) <= self.width / 2
        return jnp.where(inside, -jnp.log(self.width), -jnp.inf)

    def quantile(self, tau: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        return self.centre + (jnp.asarray(tau) - 0.5) * self.width

    @property
    def mean(self) -> Float[Array, ""]:
        return self.centre

    @property
    def variance(self) -> Float[Array, ""]:
        return self.width**2 / 12


class Dirac(Law):
    """All mass at one point; its density is infinite there and zero elsewhere."""

    point: Float[Array, ""]

    def cdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        return (jnp.asarray(z) >= self.point).astype(jnp.float32)

    def log_pdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        return jnp.where(jnp.asarray(z) == self.point, jnp.inf, -jnp.inf)

    def quantile(self, tau: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        return jnp.broadcast_to(self.point, jnp.shape(tau))

    @property
    def mean(self) -> Float[Array, ""]:
        return self.point

    @property
    def variance(self) -> Float[Array, ""]:
        return jnp.zeros_like(self.point)

    def cvar(self, alpha: float) -> Float[Array, ""]:
        return self.point


def normal(mean: Float[Array, ""], std: Float[Array, ""] | float) -> GaussianMixture:
    """One Gaussian as a mixture of one."""
    return GaussianMixture(jnp.ones(1), jnp.reshape(mean, 1), jnp.reshape(jnp.asarray(std), 1))
