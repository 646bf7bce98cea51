"""Matrix products at full precision."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp


def product(left: Any, right: Any) -> jax.Array:
    """Return `left @ right`, summed in float32 also where accelerators would round to fewer bits.

    Laws are integrals and differences of nearly equal sums, which ten bits of a product would
    drown; CPUs compute the same either way.
    """
    return jnp.matmul(left, right, precision=jax.lax.Precision.HIGHEST)


def weighted_sum(left: Any, matrix: Any, right: Any) -> jax.Array:
    """Return `left @ matrix @ right`: the sum of a matrix weighted by rows and columns."""
    return product(product(left, matrix), right)
