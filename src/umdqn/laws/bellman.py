"""The Bellman push-forward: the law of `r + gamma Z`, from a law of any representation (eq. 12)."""

from __future__ import annotations

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from umdqn.laws.law import Law


class Affine(Law):
    """The law of `shift + scale Z`, for `scale > 0`."""

    law: Law
    shift: Float[Array, ""]
    scale: Float[Array, ""]

    def cdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        return self.law.cdf((z - self.shift) / self.scale)

    def log_pdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        return self.law.log_pdf((z - self.shift) / self.scale) - jnp.log(self.scale)

    def quantile(self, tau: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        return self.shift + self.scale * self.law.quantile(tau)

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


def bellman(law: Law, reward: Float[Array, ""], discount: Float[Array, ""], terminal: Law) -> Law:
    """The law of `reward + discount Z`, or `terminal` where the discount is 0.

    With discount 0 the exact law is a Dirac at the reward, which not every metric can compare;
    `terminal` is whatever stands for it (appendix C of the paper).
    """
    ended = discount == 0
    return Either(ended, terminal, Affine(law, reward, jnp.where(ended, 1.0, discount)))
