"""Sums of ReLUs of one variable on evenly spaced points, in O(H + M) instead of O(H M)."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from umdqn.numerics.quadrature import filled, running_lines, running_sum
from umdqn.numerics.table import unit_nodes


def _first_node_past_kink(
    slope: Float[Array, "hidden"], intercept: Float[Array, "hidden"], intervals: int
) -> Int[Array, "hidden"]:
    """Index of the first node at or beyond `-intercept / slope`; past the last when none is.

    A unit of slope 0 has no kink: it is on everywhere or nowhere.
    """
    kink = -intercept / jnp.where(slope == 0, 1.0, slope)
    # Clipped as a float: a kink far away would overflow an integer.
    never = filled(intervals + 1)
    node = jnp.clip(jnp.ceil((kink + 1) * (intervals / 2)), 0, never)
    always_or_never = jnp.where(intercept > 0, 0, never)
    return jnp.where(slope == 0, always_or_never, node).astype(jnp.int32)


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def relu_sum(
    slope: Float[Array, "hidden"],
    intercept: Float[Array, "hidden"],
    weights: Float[Array, "hidden"],
    intervals: int,
) -> Float[Array, "nodes"]:
    r"""`sum_k weights_k relu(slope_k x + intercept_k)` on the nodes of `unit_nodes(intervals)`.

    As a function of x the sum is piecewise linear. A unit with positive slope switches on at its
    kink; one with negative slope is on from the start and off from its kink. Either way a line is
    added from the kink on, so that two running sums over binned kinks give every node.

    The bins are locally constant and the sum is continuous at a kink, so the gradient is exact:
    each unit receives the sum of the cotangents over the nodes at which it is on, which are again
    running sums, read at the kinks. Written by hand because XLA's own transpose is 4 times slower.
    """
    return _forward(slope, intercept, weights, intervals)[0]


def _forward(slope: Array, intercept: Array, weights: Array, intervals: int) -> tuple[Array, tuple]:
    bins = _first_node_past_kink(slope, intercept, intervals)
    coefficients = jnp.stack([slope * weights, intercept * weights])
    switched = jnp.where(slope < 0, -coefficients, coefficients)
    table = jnp.zeros((2, filled(intervals + 1)), weights.dtype)
    table = table.at[:, bins].add(switched, mode="drop")
    initial = jnp.sum(jnp.where(slope < 0, coefficients, 0.0), axis=1)
    table = table.at[:, 0].add(initial)
    return running_lines(table[0], table[1], 2.0 / intervals), (slope, intercept, weights, bins)


def _backward(intervals: int, residuals: tuple, cotangent: Array) -> tuple[Array, Array, Array]:
    slope, intercept, weights, bins = residuals
    moments = jnp.stack([cotangent * unit_nodes(intervals), cotangent])
    up_to = jax.vmap(running_sum)(moments)
    before_kink = jnp.where(bins > 0, up_to[:, jnp.maximum(bins, 1) - 1], 0.0)
    from_kink = up_to[:, -1:] - before_kink
    by_x, by_one = jnp.where(slope < 0, before_kink, from_kink)
    return weights * by_x, weights * by_one, slope * by_x + intercept * by_one


relu_sum.defvjp(_forward, _backward)
