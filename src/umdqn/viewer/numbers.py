"""Numbers as JSON can hold them: without infinities, no longer than a screen needs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# Significant digits of curves. Numbers that the page prints keep all of theirs.
_DIGITS = 6


def plain(values: Any, digits: int | None = _DIGITS) -> Any:
    """Return an array as nested lists; None where a number is not finite."""
    array = np.asarray(values)
    if array.ndim > 1:
        return [plain(row, digits) for row in array]
    if array.dtype.kind in "iub":
        return array.tolist()
    numbers = np.atleast_1d(array).tolist()
    known = np.isfinite(numbers).tolist()
    told = [_told(value, digits) if ok else None for value, ok in zip(numbers, known, strict=True)]
    return told if array.ndim else told[0]


def _told(value: float, digits: int | None) -> float:
    return value if digits is None else float(f"{value:.{digits}g}")


def finite(value: Any) -> Any:
    """Return JSON data with None for every number that is not finite."""
    if isinstance(value, dict):
        return {str(key): finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
