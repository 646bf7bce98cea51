"""What observation spaces of Gymnasium become: arrays, or one-hot vectors of numbered states."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from umdqn.errors import UmdqnError
from umdqn.specs import UNBOUNDED, Observation


def observation_of(space: spaces.Space, name: str) -> Observation:
    """Return shape, type and bounds of observations; raise if agents cannot read them."""
    if isinstance(space, spaces.Discrete):
        return one_hot_observation(int(space.n))
    if not isinstance(space, spaces.Box):
        raise UmdqnError(
            f"environment {name!r}: observation_space must be a Box or Discrete, not {space}; "
            "gymnasium.wrappers.FlattenObservation makes one of most others"
        )
    low, high = (_bounds(bound) for bound in (space.low, space.high))
    return Observation(space.shape, np.dtype(space.dtype).name, low, high)


def one_hot_observation(count: int) -> Observation:
    """Return what an agent sees of one of `count` states: a vector with a single 1."""
    # Bounds around 0, so that input scaling leaves zeros as they are; a byte per entry, since
    # memories keep hundreds of thousands of them.
    return Observation((count,), "bool", (-1.0,), (1.0,))


def one_hot(space: spaces.Discrete, value: Any) -> np.ndarray | None:
    """Return the one-hot vector of a state's number, or None if it is not in the space."""
    whole = isinstance(value, int | np.integer) or (
        isinstance(value, np.ndarray) and value.shape == () and value.dtype.kind in "iu"
    )
    if not whole or isinstance(value, bool) or not 0 <= value - space.start < space.n:
        return None
    vector = np.zeros(int(space.n), bool)
    vector[int(value - space.start)] = True
    return vector


def _bounds(bound: np.ndarray) -> tuple[float, ...]:
    """Return the bounds of all entries; a single number if they are all equal."""
    flat = np.clip(np.asarray(bound, np.float64).reshape(-1), -UNBOUNDED, UNBOUNDED)
    return (float(flat[0]),) if np.all(flat == flat[0]) else tuple(flat.tolist())
