"""The states that one can choose: cells of a grid, numbers of states, or values on sliders."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from umdqn.envs import grid_world as grid
from umdqn.envs.catalogue import CATALOGUE
from umdqn.envs.tabular import FiniteEnvironment
from umdqn.errors import InvalidField
from umdqn.specs import UNBOUNDED, EnvSpec

# Rows and columns of environments whose numbered states are the cells of a grid.
_LAYOUTS = {
    "FrozenLake-v1": (4, 4),
    "FrozenLake8x8-v1": (8, 8),
    "CliffWalking-v1": (4, 12),
    "CliffWalkingSlippery-v1": (4, 12),
}
_LABELS = {
    "CartPole": ("cart position", "cart velocity", "pole angle", "pole velocity"),
    "MountainCar": ("position", "velocity"),
    "Acrobot": ("cos 1", "sin 1", "cos 2", "sin 2", "velocity 1", "velocity 2"),
    "LunarLander": ("x", "y", "velocity x", "velocity y", "angle", "spin", "left leg", "right leg"),
}
# Where sliders end if an observation has no bounds.
_FAR = 3.0
# Longer observations are not set by hand.
_MOST_SLIDERS = 64
_MOST_TEXT = 20_000


def picker(spec: EnvSpec) -> dict[str, Any]:
    """Return how a state of an environment is chosen, as JSON data."""
    seen = spec.observation
    if spec.name == grid.SPEC.name:
        return _grid_world()
    if _is_one_hot(spec):
        count = seen.shape[0]
        rows, columns = _LAYOUTS.get(spec.name, (0, 0))
        if rows * columns == count:
            return _numbered_grid(spec)
        return {"kind": "number", "count": count, "start": "0"}
    if len(seen.shape) == 1 and seen.shape[0] <= _MOST_SLIDERS:
        return _sliders(spec)
    return {"kind": "episode", "shape": str(seen)}


def _is_one_hot(spec: EnvSpec) -> bool:
    seen = spec.observation
    return seen.dtype == "bool" and len(seen.shape) == 1 and seen.low == (-1.0,)


def _grid_world() -> dict[str, Any]:
    """Describe the cells of the grid world, row by row from the top; y points upwards."""
    ends = {grid.TRAP: "trap", grid.TARGET: "target"}
    cells = [
        {"label": f"x {x}, y {y}", "state": f"{x},{y}", "end": ends.get((x, y))}
        for y in reversed(range(grid.SIZE))
        for x in range(grid.SIZE)
    ]
    start = f"{grid.SIZE // 2 - 1},{grid.SIZE - 1}"
    return {"kind": "grid", "columns": grid.SIZE, "cells": cells, "start": start}


def _numbered_grid(spec: EnvSpec) -> dict[str, Any]:
    """Describe the cells of a grid whose states are numbered row by row from the top."""
    _, columns = _LAYOUTS[spec.name]
    env = CATALOGUE[spec.name].compiled
    assert isinstance(env, FiniteEnvironment)
    cells = []
    for state, visited in enumerate(env.mdp.visited.tolist()):
        row, column = divmod(state, columns)
        label = f"row {row + 1}, column {column + 1}"
        cells.append({"label": label, "state": str(state), "end": None if visited else "end"})
    assert env.mdp.start is not None
    return {
        "kind": "grid",
        "columns": columns,
        "cells": cells,
        "start": str(int(env.mdp.start.argmax())),
    }


def _sliders(spec: EnvSpec) -> dict[str, Any]:
    seen = spec.observation
    count = seen.shape[0]
    labels = next((names for start, names in _LABELS.items() if spec.name.startswith(start)), ())
    lows, highs = (bound * count if len(bound) == 1 else bound for bound in (seen.low, seen.high))
    entries = []
    for i, (low, high) in enumerate(zip(lows, highs, strict=True)):
        bounded = max(abs(low), abs(high)) < UNBOUNDED / 10
        low, high = (low, high) if bounded else (max(low, -_FAR), min(high, _FAR))
        value = min(max(0.0, low), high)
        label = labels[i] if len(labels) == count else f"entry {i}"
        entries.append({"label": label, "low": low, "high": high, "value": value})
    start = ",".join(f"{entry['value']:g}" for entry in entries)
    return {"kind": "sliders", "entries": entries, "start": start}


def observation(spec: EnvSpec, text: str) -> np.ndarray:
    """Read the observation of a state from text: a number of a state, or values with commas."""
    seen = spec.observation
    numbers = _numbers(text)
    if _is_one_hot(spec):
        count = seen.shape[0]
        if len(numbers) != 1 or numbers[0] not in range(count):
            raise InvalidField("state", text[:80], f"a whole number from 0 to {count - 1}")
        return np.arange(count) == int(numbers[0])
    if seen.is_picture or len(seen.shape) != 1:
        raise InvalidField("state", text[:80], "a step of an episode: observations are pictures")
    if len(numbers) != seen.shape[0]:
        raise InvalidField("state", text[:80], f"{seen.shape[0]} numbers with commas between them")
    if spec.name == grid.SPEC.name and tuple(numbers) not in grid.STATES:
        raise InvalidField("state", text[:80], "a cell of the grid, other than trap and target")
    return np.asarray(numbers, seen.dtype)


def _numbers(text: str) -> list[float]:
    try:
        numbers = [float(part) for part in text[:_MOST_TEXT].split(",")]
    except ValueError:
        numbers = []
    largest = float(np.finfo(np.float32).max)
    if not numbers or not all(math.isfinite(n) and abs(n) <= largest for n in numbers):
        raise InvalidField("state", text[:80], "finite numbers with commas between them")
    return numbers


def every_state(spec: EnvSpec) -> tuple[list[str], np.ndarray] | None:
    """Return the states of a grid and their observations; None if the states are no grid."""
    found = picker(spec)
    if found["kind"] != "grid":
        return None
    states = [cell["state"] for cell in found["cells"] if cell["end"] is None]
    return states, np.stack([observation(spec, state) for state in states])
