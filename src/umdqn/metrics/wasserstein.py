"""The Wasserstein distance of UMDQN-W, by quantile regression (appendix C)."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from umdqn.laws import Dirac, Law
from umdqn.metrics.metric import Metric, unit_points
from umdqn.numerics import running_sum
from umdqn.types import Domain, Key, check


@dataclasses.dataclass(frozen=True)
class Wasserstein(Metric):
    """`sum_i E_j[rho_{tau_i}^kappa(F_target^{-1}(tau_j) - F^{-1}(tau_i))]` over drawn fractions."""

    kappa: float = 1.0
    """Huber threshold; 0 is plain quantile regression. Large against the returns, the minimiser is
    no longer a quantile."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.kappa >= 0, "kappa", self.kappa, "at least 0")

    def draw(
        self, key: Key, domain: Domain
    ) -> tuple[Float[Array, "points"], Float[Array, "points"]]:
        """The fractions of the prediction, and those of the target in increasing order."""
        first, second = jax.random.split(key)
        fractions = _inside(unit_points(first, self.points, self.sampling))
        target_fractions = _inside(unit_points(second, self.points, self.sampling))
        return fractions, jnp.sort(target_fractions)

    def terminal(self, reward: Float[Array, ""], domain: Domain) -> Law:
        """A Dirac: its quantile function is a constant."""
        return Dirac(reward)

    def __call__(
        self,
        target: Law,
        prediction: Law,
        points: tuple[Float[Array, "points"], Float[Array, "points"]],
        domain: Domain,
    ) -> Float[Array, ""]:
        fractions, target_fractions = points
        quantiles = prediction.quantile(fractions)
        return quantile_huber(quantiles, fractions, target.quantile(target_fractions), self.kappa)


def _inside(fractions: Float[Array, "points"]) -> Float[Array, "points"]:
    """Fractions off 0 and 1, where the quantiles of an unbounded law are infinite."""
    return jnp.clip(fractions, 2.0**-24, 1.0 - 2.0**-24)


def quantile_huber(
    quantiles: Float[Array, "n"],
    fractions: Float[Array, "n"],
    targets: Float[Array, "m"],
    kappa: float,
) -> Float[Array, ""]:
    """`sum_i mean_j rho_{tau_i}^kappa(targets_j - quantiles_i)`; the targets must be increasing.

    The loss of one quantile is piecewise quadratic in it, with pieces bounded by the targets and
    the targets +- kappa. Prefix sums over the sorted targets give every piece, so n x m pairs cost
    O((n + m) log m); the gradient follows because the counts are locally constant.
    """
    total = targets.shape[0]
    # Sums of squares around the middle of the targets lose fewer digits.
    centre = jax.lax.stop_gradient(jnp.mean(targets))
    targets, quantiles = targets - centre, quantiles - centre
    sums, squares = (jnp.pad(running_sum(power), (1, 0)) for power in (targets, targets**2))
    near_below, below, near_above = _ranks(targets, quantiles, kappa)

    def linear(start: Array | int, stop: Array | int) -> Array:
        """`sum (targets - quantile)` over targets[start:stop]."""
        return sums[stop] - sums[start] - (stop - start) * quantiles

    def quadratic(start: Array, stop: Array) -> Array:
        """`sum (targets - quantile)^2 / (2 kappa)` over targets[start:stop]."""
        spread = squares[stop] - squares[start] - 2 * quantiles * (sums[stop] - sums[start])
        return (spread + (stop - start) * quantiles**2) / (2 * kappa)

    under = -linear(0, near_below) - near_below * (kappa / 2)
    over = linear(near_above, total) - (total - near_above) * (kappa / 2)
    if kappa:
        under += quadratic(near_below, below)
        over += quadratic(below, near_above)
    return jnp.sum((1 - fractions) * under + fractions * over) / total


def _ranks(
    targets: Float[Array, "m"], quantiles: Float[Array, "n"], kappa: float
) -> tuple[Int[Array, "n"], Int[Array, "n"], Int[Array, "n"]]:
    """How many targets lie below each quantile minus kappa, below it, and below it plus kappa."""
    if not kappa:
        below = jnp.searchsorted(targets, quantiles)
        return below, below, below
    bounds = jnp.concatenate([quantiles - kappa, quantiles, quantiles + kappa])
    near_below, below, near_above = jnp.searchsorted(targets, bounds).reshape(3, -1)
    return near_below, below, near_above
