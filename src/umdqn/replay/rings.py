"""Rings of rows, in JAX or NumPy: writing, drawing, and moving in and out of files.

The same code serves both loops. In NumPy a write changes the array in place; in JAX it returns a
new array, which compiled programs write in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from umdqn.errors import UmdqnError
from umdqn.specs import AnyArray, Key

Rings = dict[str, Any]
"""Arrays of a memory by name, all of one library."""

Rows = dict[str, np.ndarray]
"""Rows of rings as files keep them: `RING/NAME`, and `RING/first`, the count of the first row."""

Random = Key | np.random.Generator
"""A source of randomness: a key in JAX, a generator in NumPy."""


def put(ring: Any, slot: Any, row: Any) -> Any:
    """Write one row."""
    if isinstance(ring, np.ndarray):
        ring[slot] = row
        return ring
    return jax.lax.dynamic_update_index_in_dim(ring, jnp.asarray(row, ring.dtype), slot, 0)


def fill(ring: Any, slots: Any, value: Any) -> Any:
    """Write one value to several rows."""
    if isinstance(ring, np.ndarray):
        ring[slots] = value
        return ring
    return ring.at[slots].set(value)


def draw(random: Random, high: Any, count: int) -> Any:
    """Draw `count` integers from 0 to below `high`."""
    if isinstance(random, np.random.Generator):
        return random.integers(0, high, count)
    return jax.random.randint(random, (count,), 0, high)


def draw_valid(
    random: Random, high: Any, count: int, valid: AnyArray, index_of: Callable[[Any], Any]
) -> Any:
    """Draw `count` indices of integers from 0 to below `high` at which `valid` holds.

    There must be at least one.
    """
    if isinstance(random, np.random.Generator):
        chosen = index_of(draw(random, high, count))
        while not (good := valid[chosen]).all():
            chosen = np.where(good, chosen, index_of(draw(random, high, count)))
        return chosen

    def redraw(carry: tuple[Any, Any]) -> tuple[Any, Any]:
        chosen, attempt = carry
        again = index_of(draw(jax.random.fold_in(random, attempt), high, count))
        return jnp.where(valid[chosen], chosen, again), attempt + 1

    start = (index_of(draw(random, high, count)), jnp.int32(0))
    chosen, _ = jax.lax.while_loop(lambda carry: ~jnp.all(valid[carry[0]]), redraw, start)
    return chosen


def ring_rows(arrays: dict[str, np.ndarray], ring: int, first: int, last: int) -> Rows:
    """Return the rows of a ring from one count to another, oldest first."""
    size = len(next(iter(arrays.values())))
    slots = np.arange(first, last) % size
    rows = {f"{ring}/{name}": array[slots] for name, array in arrays.items()}
    return rows | {f"{ring}/first": np.array(first)}


def put_rows(arrays: dict[str, np.ndarray], ring: int, rows: Rows, entered: int) -> None:
    """Put rows back where they were; raise if they are not rows of these arrays."""
    first = _first_of(arrays, ring, rows, entered)
    for name, array in arrays.items():
        piece = rows[f"{ring}/{name}"]
        last = first + len(piece)
        # Of more rows than fit, the last ones count.
        piece = piece[-len(array) :]
        array[np.arange(last - len(piece), last) % len(array)] = piece


def _first_of(arrays: dict[str, np.ndarray], ring: int, rows: Rows, entered: int) -> int:
    """Return the count of the first row, after a check of names, shapes, types and counts."""
    first = rows.get(f"{ring}/first")
    pieces = {name: rows.get(f"{ring}/{name}") for name in arrays}
    for name, piece in pieces.items():
        array = arrays[name]
        like = piece is not None and piece.dtype == array.dtype and piece.ndim == array.ndim
        if piece is None or not like or piece.shape[1:] != array.shape[1:]:
            raise UmdqnError(
                f"the saved replay memory is corrupt: rows of {name!r} are of another kind"
            )
    if first is None or first.shape or first.dtype.kind != "i":
        raise UmdqnError("the saved replay memory is corrupt: rows without a number")
    ends = {int(first) + len(piece) for piece in pieces.values() if piece is not None}
    if int(first) < 0 or len(ends) != 1 or max(ends) > entered:
        raise UmdqnError("the saved replay memory is corrupt: rows are not where they were")
    return int(first)
