"""Input scaling: what networks see of an observation."""

from __future__ import annotations

import numpy as np

from umdqn.specs import Observation

# Half the distance between bounds that are likely to be reached.
_WIDE = 3.0


def scaling(observation: Observation, picture: bool) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return what to subtract from an observation's entries and what to divide them by.

    Entries with narrow bounds are scaled to [-1, 1]; pictures to [0, 1], as the paper does. Wide
    bounds of measured quantities are limits that are seldom reached: those stay as they are.
    """
    low, high = (np.array(bounds, np.float64) for bounds in (observation.low, observation.high))
    # Some environments write "no bound" as the largest number of their type.
    bounded = (low > -1e30) & (high < 1e30) & (low < high)
    if not picture and not np.issubdtype(observation.dtype, np.integer):
        bounded &= high - low <= 2 * _WIDE
    low, high = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
    if picture:
        # One scale for all pixels.
        low, high = low.min(keepdims=True), high.max(keepdims=True)
    centre = low if picture else (low + high) / 2
    return tuple(centre.tolist()), tuple((high - low if picture else (high - low) / 2).tolist())
