"""The Wasserstein distance of UMDQN-W, by quantile regression (appendix C)."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from umdqn.laws import Law, View
from umdqn.metrics.metric import Metric, unit_points
from umdqn.numerics import kept, running_sum
from umdqn.types import Domain, Key, check

# Up to this many pairs of a quantile and a target, looking at each beats sorting the targets.
_FEW_PAIRS = 64 * 64


@dataclasses.dataclass(frozen=True)
class Wasserstein(Metric):
    """`sum_i E_j[rho_{tau_i}^kappa(F_target^{-1}(tau_j) - F^{-1}(tau_i))]` over drawn fractions."""

    needs: ClassVar[frozenset[View]] = frozenset({"quantile"})

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
        fractions = inside(unit_points(first, self.points, self.sampling))
        target_fractions = inside(unit_points(second, self.points, self.sampling))
        return fractions, jnp.sort(target_fractions)

    def __call__(
        self,
        target: Law,
        prediction: Law,
        points: tuple[Float[Array, "points"], Float[Array, "points"]],
        domain: Domain,
    ) -> Float[Array, ""]:
        own_fractions, target_fractions = points
        fractions, quantiles = prediction.regressed(own_fractions)
        targets, weights = target.particles(target_fractions)
        if quantiles.shape[0] * targets.shape[0] <= _FEW_PAIRS:
            return paired_quantile_huber(quantiles, fractions, targets, weights, self.kappa)
        targets, weights = target.sorted_particles(target_fractions)
        return quantile_huber(quantiles, fractions, targets, weights, self.kappa)


def inside(fractions: Float[Array, "points"]) -> Float[Array, "points"]:
    """Fractions off 0 and 1, where the quantiles of an unbounded law are infinite."""
    return jnp.clip(fractions, 2.0**-24, 1.0 - 2.0**-24)


def paired_quantile_huber(
    quantiles: Float[Array, "n"],
    fractions: Float[Array, "n"],
    targets: Float[Array, "m"],
    weights: Float[Array, "m"],
    kappa: float,
) -> Float[Array, ""]:
    """`sum_i sum_j weights_j rho_{tau_i}^kappa(targets_j - quantiles_i)`, pair by pair."""
    error = targets - quantiles[:, None]
    size = jnp.abs(error)
    small = jnp.minimum(size, kappa)
    huber = small * (size - small / 2) / kappa if kappa else size
    return jnp.sum(jnp.abs(fractions[:, None] - (error < 0)) * huber @ weights)


@partial(jax.custom_vjp, nondiff_argnums=(4,))
def quantile_huber(
    quantiles: Float[Array, "n"],
    fractions: Float[Array, "n"],
    targets: Float[Array, "m"],
    weights: Float[Array, "m"],
    kappa: float,
) -> Float[Array, ""]:
    """The same sum over pairs; the targets must be increasing.

    The loss of one quantile is piecewise quadratic in it, with pieces bounded by the targets and
    the targets +- kappa. Prefix sums over the sorted targets give every piece and its derivative,
    so n x m pairs cost O((n + m) log m). Differentiable in the quantiles; fractions, targets and
    weights are data.
    """
    return _loss_and_gradient(quantiles, fractions, targets, weights, kappa)[0]


def _loss_and_gradient(
    quantiles: Array, fractions: Array, targets: Array, weights: Array, kappa: float
) -> tuple[Array, Array]:
    # Sums of squares around the middle of the targets lose fewer digits.
    centre = targets[targets.shape[0] // 2]
    targets, quantiles = kept(targets - centre), kept(quantiles - centre)
    # The mass of targets below each quantile minus kappa, below it, and below it plus kappa, and
    # the sums of these targets and of their squares.
    bounds = jnp.concatenate([quantiles - kappa, quantiles, quantiles + kappa])
    ranks = jnp.searchsorted(targets, bounds)
    masses, sums, squares = (
        kept(jnp.pad(running_sum(weights * targets**power), (1, 0))[ranks]).reshape(3, -1)
        for power in range(3)
    )
    far_below, below, near = masses
    far_above = jnp.sum(weights) - near
    if kappa:
        # Sums over the targets within kappa: of the errors, and of their squares, over kappa.
        under = (sums[1] - sums[0] - (below - far_below) * quantiles) / kappa
        over = (sums[2] - sums[1] - (near - below) * quantiles) / kappa
        under_squares = _squared(squares[:2], sums[:2], below - far_below, quantiles) / kappa
        over_squares = _squared(squares[1:], sums[1:], near - below, quantiles) / kappa
    else:
        under = over = under_squares = over_squares = jnp.zeros_like(quantiles)
    total = jnp.sum(weights * targets)
    loss_below = far_below * (quantiles - kappa / 2) - sums[0] + under_squares / 2
    loss_above = total - sums[2] - far_above * (quantiles + kappa / 2) + over_squares / 2
    loss = jnp.sum((1 - fractions) * loss_below + fractions * loss_above)
    gradient = (1 - fractions) * (far_below - under) - fractions * (far_above + over)
    return loss, gradient


def _squared(squares: Array, sums: Array, mass: Array, quantiles: Array) -> Array:
    """Sum of squared errors between two ranks, from the sums of targets and of their squares."""
    return squares[1] - squares[0] - 2 * quantiles * (sums[1] - sums[0]) + mass * quantiles**2


def _backward(kappa: float, gradient: Array, cotangent: Array) -> tuple[Array, None, None, None]:
    return cotangent * gradient, None, None, None


quantile_huber.defvjp(_loss_and_gradient, _backward)
