"""Inversion of increasing functions that have no closed inverse."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

_DOUBLINGS = 64
_BISECTIONS = 64


@eqx.filter_custom_jvp
def invert_monotone(
    function: PyTree[Callable[[Array], Array]],
    y: Float[Array, "*points"],
    low: Float[Array, ""] | float,
    high: Float[Array, ""] | float,
) -> Float[Array, "*points"]:
    """Solve `function(x) = y` for an increasing, vectorised `function`, to float precision.

    The bracket [low, high] is a first guess: it is doubled outwards until it holds each solution,
    then halved until it cannot be halved further. Differentiable in y and in the arrays of
    `function` (a pytree) by the implicit function theorem.
    """
    y = jnp.asarray(y, jnp.float32)
    centre, reach = (low + high) / 2, (high - low) / 2

    def widen(bracket: tuple[Array, Array], doubling: Array) -> tuple[tuple[Array, Array], None]:
        left, right = bracket
        step = reach * 2.0**doubling
        left = jnp.where(function(left) > y, centre - step, left)
        right = jnp.where(function(right) < y, centre + step, right)
        return (left, right), None

    def halve(bracket: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        left, right = bracket
        middle = left + (right - left) / 2
        low_side = function(middle) < y
        return (jnp.where(low_side, middle, left), jnp.where(low_side, right, middle)), None

    start = (jnp.full(y.shape, low, jnp.float32), jnp.full(y.shape, high, jnp.float32))
    bracket, _ = jax.lax.scan(widen, start, jnp.arange(1.0, _DOUBLINGS + 1))
    (left, right), _ = jax.lax.scan(halve, bracket, None, length=_BISECTIONS)
    return jnp.where(jnp.abs(function(left) - y) < jnp.abs(function(right) - y), left, right)


@invert_monotone.def_jvp
def _invert_monotone_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    function, y, low, high = primals
    function_tangent, y_tangent, _, _ = tangents
    x = invert_monotone(function, y, low, high)
    arrays, static = eqx.partition(function, eqx.is_inexact_array)
    zeros = jax.tree.map(jnp.zeros_like, arrays)
    moved = zeros if function_tangent is None else eqx.combine(function_tangent, zeros)

    def value(arrays: PyTree, x: Array) -> Array:
        return eqx.combine(arrays, static)(x)

    _, drift = jax.jvp(lambda arrays: value(arrays, x), (arrays,), (moved,))
    _, slope = jax.jvp(lambda x: value(arrays, x), (x,), (jnp.ones_like(x),))
    rise = jnp.zeros_like(x) if y_tangent is None else y_tangent
    return x, (rise - drift) / slope
