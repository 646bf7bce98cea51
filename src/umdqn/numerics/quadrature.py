"""Running sums, the cumulative trapezoid rule, and Clenshaw-Curtis as the referee."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from umdqn.numerics.products import product

_BLOCK = 16
_BLOCK_SUMS = np.vstack([np.triu(np.ones((_BLOCK, _BLOCK))), np.ones((1, _BLOCK))]).astype("f4")


def filled(count: int) -> int:
    """`count` raised to a number of points that `running_sum` takes without copying."""
    return -(-count // _BLOCK) * _BLOCK


def running_sum(values: Float[Array, "points"]) -> Float[Array, "points"]:
    """Inclusive cumulative sum.

    On a CPU two small triangular matrix products, within blocks and over blocks, are several times
    faster than XLA's own cumulative sum; accelerators keep that.
    """

    def blocked(values: Array) -> Array:
        count = values.shape[0]
        blocks = filled(count) // _BLOCK
        if count % _BLOCK:
            values = jnp.pad(values, (0, blocks * _BLOCK - count))
        rows = values.reshape(blocks, _BLOCK)
        before = product(jnp.sum(rows, axis=1), np.triu(np.ones((blocks, blocks), np.float32), 1))
        # The last operation is a product, whose result XLA stores: an addition would be recomputed
        # in each operation that uses the sums.
        carried = jnp.concatenate([rows, before[:, None]], axis=1)
        return product(carried, _BLOCK_SUMS).reshape(-1)[:count]

    return jax.lax.platform_dependent(values, cpu=blocked, default=jnp.cumsum)


def kept(values: Float[Array, "points"]) -> Float[Array, "points"]:
    """Return the same values, in a form that XLA for CPUs computes only once.

    XLA recomputes expressions that look cheap, table look-ups included, inside each operation that
    uses them, and ignores optimisation barriers. It stores the result of a matrix product.
    """

    def multiplied(values: Array) -> Array:
        count = values.shape[0]
        rows = jnp.pad(values, (0, filled(count) - count)).reshape(-1, _BLOCK)
        return product(rows, np.eye(_BLOCK, dtype=np.float32)).reshape(-1)[:count]

    return jax.lax.platform_dependent(values, cpu=multiplied, default=lambda values: values)


def running_lines(
    rises: Float[Array, "points"], heights: Float[Array, "points"], spacing: float
) -> Float[Array, "points"]:
    """`x_i sum_{j <= i} rises_j + sum_{j <= i} heights_j` at `x_i = -1 + i spacing`.

    One product instead of two running sums: within a block x is the block's first point plus a
    multiple of the spacing. The number of points must be one that `filled` gives.
    """
    blocks = rises.shape[0] // _BLOCK
    first = jnp.asarray(-1.0 + spacing * _BLOCK * np.arange(blocks), jnp.float32)[:, None]
    earlier = np.triu(np.ones((blocks, blocks), np.float32), 1)

    def with_carry(values: Array) -> Array:
        return jnp.concatenate([values, product(jnp.sum(values, axis=1), earlier)[:, None]], axis=1)

    rise, height = (with_carry(v.reshape(blocks, _BLOCK)) for v in (rises, heights))
    offsets = (spacing * np.arange(_BLOCK)).astype(np.float32)
    mixing = np.vstack([_BLOCK_SUMS * offsets, _BLOCK_SUMS])
    return product(jnp.concatenate([rise, height + first * rise], axis=1), mixing).reshape(-1)


def cumulative_trapezoid(values: Float[Array, "points"], spacing: float) -> Float[Array, "points"]:
    """Integral from the first point to each point, of a function known on evenly spaced points."""
    return spacing * (running_sum(values) - (values + values[0]) / 2)


@lru_cache
def _clenshaw_curtis_rule(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [-1, 1]: integrate the cosine expansion term by term."""
    angles = np.pi * np.arange(steps + 1) / steps
    even = np.arange(0, steps + 1, 2)
    moments = 2.0 / (1.0 - even**2)
    halved = np.where((even == 0) | (even == steps), 0.5, 1.0)
    weights = (2.0 / steps) * np.cos(np.outer(angles, even)) @ (moments * halved)
    weights[[0, -1]] /= 2
    return np.cos(angles), weights


def clenshaw_curtis(
    function: Callable[[Float[Array, "nodes"]], Float[Array, "nodes *out"]],
    lower: Float[Array, ""] | float,
    upper: Float[Array, ""] | float,
    steps: int = 50,
) -> Float[Array, "*out"]:
    """Integrate `function` from `lower` to `upper` with `steps` + 1 nodes (appendix B).

    The paper's own scheme, and the referee of the faster ones. `steps` must be even.
    """
    if steps < 2 or steps % 2:
        raise ValueError(f"Clenshaw-Curtis takes an even number of steps, got {steps}")
    nodes, weights = _clenshaw_curtis_rule(steps)
    half = (upper - lower) / 2
    values = function(lower + half * (1 + jnp.asarray(nodes, jnp.float32)))
    return half * jnp.tensordot(
        jnp.asarray(weights, values.dtype), values, axes=1, precision=jax.lax.Precision.HIGHEST
    )
