"""Quantile regression with Huber's loss, for metrics: pair by pair, or by prefix sums."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from umdqn.numerics.products import product
from umdqn.numerics.quadrature import kept, running_sum


def inside(fractions: Float[Array, "points"]) -> Float[Array, "points"]:
    """Move fractions off 0 and 1, where the quantiles of an unbounded law are infinite."""
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
    return jnp.sum(product(jnp.abs(fractions[:, None] - (error < 0)) * huber, weights))


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
