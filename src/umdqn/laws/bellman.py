"""The Bellman push-forward: the law of `r + gamma Z`, from a law of any representation (eq. 12)."""

from __future__ import annotations

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from umdqn.laws.law import Law


class Affine(Law):
    """The law of `shift + scale Z`, for `scale >= 0`; with scale 0, all mass at the shift."""

    law: Law
    shift: Float[Array, ""]
    scale: Float[Array, ""]

    def cdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        unscaled, point = self._unscaled(z)
        return jnp.where(point, jnp.asarray(z) >= self.shift, self.law.cdf(unscaled))

    def spread_cdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        unscaled, point = self._unscaled(z)
        return jnp.where(point, jnp.asarray(z) >= self.shift, self.law.spread_cdf(unscaled))

    def log_pdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        unscaled, point = self._unscaled(z)
        spike = jnp.where(jnp.asarray(z) == self.shift, jnp.inf, -jnp.inf)
        return jnp.where(point, spike, self.law.log_pdf(unscaled) - jnp.log(self.scale))

    def _unscaled(
        self, z: Float[ArrayLike, "*points"]
    ) -> tuple[Float[Array, "*points"], Bool[Array, ""]]:
        """Where z comes from, and whether the question makes no sense."""
        point = self.scale == 0
        return (jnp.asarray(z) - self.shift) / jnp.where(point, 1.0, self.scale), point

    def quantile(self, tau: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        return self.shift + self.scale * self.law.quantile(tau)

    def particles(
        self, fractions: Float[Array, "count"]
    ) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
        positions, weights = self.law.particles(fractions)
        return self.shift + self.scale * positions, weights

    def sorted_particles(
        self, fractions: Float[Array, "count"]
    ) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
        positions, weights = self.law.sorted_particles(fractions)
        return self.shift + self.scale * positions, weights

    @property
    def mean(self) -> Float[Array, ""]:
        return self.shift + self.scale * self.law.mean

    @property
    def variance(self) -> Float[Array, ""]:
        return self.scale**2 * self.law.variance

    def cvar(self, alpha: float) -> Float[Array, ""]:
        return self.shift + self.scale * self.law.cvar(alpha)


class Either(Law):
    """`first` where `condition` holds, `second` elsewhere; both are evaluated."""

    condition: Bool[Array, ""]
    first: Law
    second: Law

    def cdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        return jnp.where(self.condition, self.first.cdf(z), self.second.cdf(z))

    def log_pdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        return jnp.where(self.condition, self.first.log_pdf(z), self.second.log_pdf(z))

    def quantile(self, tau: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        return jnp.where(self.condition, self.first.quantile(tau), self.second.quantile(tau))

    @property
    def mean(self) -> Float[Array, ""]:
        return jnp.where(self.condition, self.first.mean, self.second.mean)

    @property
    def variance(self) -> Float[Array, ""]:
        return jnp.where(self.condition, self.first.variance, self.second.variance)

    def cvar(self, alpha: float) -> Float[Array, ""]:
        return jnp.where(self.condition, self.first.cvar(alpha), self.second.cvar(alpha))


def bellman(
    law: Law, reward: Float[Array, ""], discount: Float[Array, ""], terminal: Law | None = None
) -> Law:
    """The law of `reward + discount Z`.

    Where the discount is 0 this is a Dirac at the reward, which not every metric can compare;
    `terminal`, if given, stands for it there (appendix C of the paper).
    """
    pushed = Affine(law.confined(), reward, discount)
    return pushed if terminal is None else Either(discount == 0, terminal, pushed)
