"""Rings of rows, in and out of files."""

from __future__ import annotations

import numpy as np

Rows = dict[str, np.ndarray]
"""Rows of rings as files keep them: `RING/NAME`, and `RING/first`, the count of the first row."""


def ring_rows(arrays: dict[str, np.ndarray], ring: int, first: int, last: int) -> Rows:
    """The rows of a ring from a count to another, oldest first."""
    size = len(next(iter(arrays.values())))
    slots = np.arange(first, last) % size
    rows = {f"{ring}/{name}": array[slots] for name, array in arrays.items()}
    return rows | {f"{ring}/first": np.array(first)}


def put_rows(arrays: dict[str, np.ndarray], ring: int, rows: Rows) -> None:
    """Put rows back where they were."""
    first = int(rows[f"{ring}/first"])
    for name, array in arrays.items():
        piece = rows[f"{ring}/{name}"]
        # Of more rows than there is room for, the last ones count.
        piece = piece[-len(array) :]
        last = first + len(rows[f"{ring}/{name}"])
        array[np.arange(last - len(piece), last) % len(array)] = piece
