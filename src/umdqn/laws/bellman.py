"""The Bellman push-forward: the law of `r + gamma Z`, from a law of any representation (eq. 12)."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from umdqn.laws.law import Law
from umdqn.laws.particles import Particles
from umdqn.laws.trained import TrainedLaw


class Affine(TrainedLaw):
    """The law of `shift + scale Z`, for `scale >= 0`; with scale 0, all mass at the shift."""

    law: Law
    shift: Float[Array, "*laws"]
    scale: Float[Array, "*laws"]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.shift.shape

    @property
    def mean(self) -> Float[Array, "*laws"]:
        return self.shift + self.scale * self.law.mean

    def _cdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        unscaled, point = self._unscaled(z)
        return jnp.where(point, z >= self.shift, self.law._cdf(unscaled))

    def _spread_cdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        unscaled, point = self._unscaled(z)
        return jnp.where(point, z >= self.shift, self.law._spread_cdf(unscaled))

    def _log_pdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        unscaled, point = self._unscaled(z)
        spike = jnp.where(z == self.shift, jnp.inf, -jnp.inf)
        return jnp.where(point, spike, self.law._log_pdf(unscaled) - jnp.log(self.scale))

    def _unscaled(
        self, z: Float[Array, "*points"]
    ) -> tuple[Float[Array, "*points"], Bool[Array, ""]]:
        """The return of Z that leads to z, and whether there is none because the scale is 0."""
        point = self.scale == 0
        return (z - self.shift) / jnp.where(point, 1.0, self.scale), point

    def _quantile(self, tau: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return self.shift + self.scale * self.law._quantile(tau)

    def _variance(self) -> Float[Array, ""]:
        return self.scale**2 * self.law._variance()

    def _cvar(self, alpha: float) -> Float[Array, ""]:
        return self.shift + self.scale * self.law._cvar(alpha)

    def _crps(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        unscaled, point = self._unscaled(z)
        scored = self.scale * self.law._crps(unscaled)
        return jnp.where(point, jnp.abs(z - self.shift), scored)

    def particles(self, fractions: Float[Array, "count"]) -> Particles:
        if isinstance(self.law, TrainedLaw):
            return self.law.particles(fractions).affine(self.shift, self.scale)
        weights = jnp.full(fractions.shape, 1.0 / fractions.shape[0])
        return Particles(self._quantile(fractions), weights, ordered=True, even=True)

    def cells(self, fractions: Float[Array, "count"]) -> Particles:
        if isinstance(self.law, TrainedLaw):
            return self.law.cells(fractions).affine(self.shift, self.scale)
        return self.particles(fractions)


class Either(Law):
    """`first` where `condition` holds, `second` elsewhere; both are evaluated."""

    condition: Bool[Array, "*laws"]
    first: Law
    second: Law

    @property
    def shape(self) -> tuple[int, ...]:
        return self.condition.shape

    @property
    def mean(self) -> Float[Array, "*laws"]:
        return jnp.where(self.condition, self.first.mean, self.second.mean)

    def _cdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return jnp.where(self.condition, self.first._cdf(z), self.second._cdf(z))

    def _log_pdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return jnp.where(self.condition, self.first._log_pdf(z), self.second._log_pdf(z))

    def _quantile(self, tau: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return jnp.where(self.condition, self.first._quantile(tau), self.second._quantile(tau))

    def _variance(self) -> Float[Array, ""]:
        return jnp.where(self.condition, self.first._variance(), self.second._variance())

    def _cvar(self, alpha: float) -> Float[Array, ""]:
        return jnp.where(self.condition, self.first._cvar(alpha), self.second._cvar(alpha))

    def _crps(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return jnp.where(self.condition, self.first._crps(z), self.second._crps(z))


def bellman(
    law: Law,
    reward: Float[Array, ""],
    discount: Float[Array, ""],
    terminal: Law | None = None,
) -> Law:
    """Return the law of `reward + discount Z`.

    Where the discount is 0 this is a Dirac at the reward, which not every metric can compare;
    `terminal`, if given, takes its place there (appendix C of the paper).
    """
    pushed = Affine(law.confined(), reward, discount)
    return pushed if terminal is None else Either(discount == 0, terminal, pushed)
