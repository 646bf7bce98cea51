"""Arrays that the host loop saves of a seed besides agent and memory, and their checks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from umdqn.envs.positions import MOST_REPLAYED, Position
from umdqn.loops.snapshot import Like, check_arrays, require
from umdqn.specs import EnvSpec

_FORGOTTEN = -1
"""Saved as the length of an episode whose actions are not kept."""


def check_seed(rest: Mapping[str, np.ndarray], copies: int, spec: EnvSpec, where: str) -> None:
    """Raise `UmdqnError` unless arrays are those of a seed with so many copies."""
    expected = {
        "counts": Like("i", (2,)),
        "actions": Like("i", (copies,)),
        "returns": Like("f", (copies,)),
        "random": Like("u", (6,)),
    }
    check_arrays(rest, expected, where)
    counts, actions = rest["counts"], rest["actions"]
    require(((counts >= 0) & (counts < 2**31)).all(), "counts are out of range", where)
    if "observation" not in rest:
        return
    known = np.dtype(spec.observation.dtype).kind
    positions = {
        "observation": Like(known, (copies, *spec.observation.shape)),
        "seed": Like("i", ()),
        "episodes": Like("i", (copies,)),
        "lengths": Like("i", (copies,)),
        "done": Like("i", (-1,)),
    }
    check_arrays(rest, positions, where)
    lengths, done = rest["lengths"], rest["done"]
    bounded = (lengths >= _FORGOTTEN) & (lengths <= MOST_REPLAYED)
    require(bounded.all(), "an episode is too long", where)
    require(np.maximum(lengths, 0).sum() == len(done), "actions are missing", where)
    for chosen in (actions, done):
        inside = (chosen >= 0) & (chosen < spec.num_actions)
        require(inside.all(), f"an action is not below {spec.num_actions}", where)
    require(rest["seed"] >= 0 and (rest["episodes"] >= 0).all(), "a seed is negative", where)


def position_arrays(position: Position) -> dict[str, np.ndarray]:
    """Return the position of a seed's environments as arrays."""
    kept = [() if done is None else done for done in position.actions]
    lengths = [_FORGOTTEN if done is None else len(done) for done in position.actions]
    return {
        "seed": np.array(position.seed),
        "episodes": np.array(position.episodes),
        "lengths": np.array(lengths),
        "done": np.array([action for done in kept for action in done], np.int64),
    }


def position_of(rest: Mapping[str, np.ndarray]) -> Position:
    """Return the position that arrays hold."""
    lengths = rest["lengths"]
    parts = np.split(rest["done"], np.cumsum(np.maximum(lengths, 0))[:-1])
    actions = tuple(
        None if length == _FORGOTTEN else tuple(part.tolist())
        for length, part in zip(lengths, parts, strict=True)
    )
    return Position(int(rest["seed"]), tuple(rest["episodes"].tolist()), actions)
