"""Laws of an exported agent, with NumPy alone: this package and `model.npz` are all it takes.

    model = Model.load("model.npz")
    model.mean(observation)                          # mean returns of all actions
    model.quantiles(observation, [0.05, 0.5, 0.95])  # [actions, fractions]
    model.act(observation)                           # the greedy action

The file holds arrays and a list of operations as JSON. Nothing in it is executed as code.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .operations import OPERATIONS

FORMAT = "umdqn-portable"
FORMAT_VERSION = 1

# Most rounds of a loop in a file.
_MOST_ROUNDS = 100_000


class Model:
    """An exported agent."""

    def __init__(self, info: dict[str, Any], arrays: Mapping[str, np.ndarray]):
        self.info = info
        """Names of actions, description of observations, and where the agent came from."""
        self._arrays = arrays

    @classmethod
    def load(cls, path: str | Path | io.IOBase) -> Model:
        """Read `model.npz`; raises `ValueError` if it is not an exported agent."""
        try:
            with np.load(path) as file:
                arrays = {name: file[name] for name in file.files}
            info = json.loads(bytes(arrays.pop("info")).decode())
            known = info["format"] == FORMAT and info["format_version"] == FORMAT_VERSION
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path} is not an agent exported by umdqn: {error}") from error
        if not known:
            raise ValueError(f"{path} is of another format or version than this reader")
        return cls(info, arrays)

    def mean(self, observation: Any) -> np.ndarray:
        """Return the mean returns of all actions, for one observation or for each of a batch."""
        return self._over(observation, lambda seen: self._run("summary", seen)[0])

    def scores(self, observation: Any) -> np.ndarray:
        """Return what the greedy choice compares."""
        return self._over(observation, lambda seen: self._run("summary", seen)[1])

    def act(self, observation: Any) -> np.ndarray:
        """Return the greedy actions, by the environment's numbers."""
        return np.argmax(self.scores(observation), axis=-1) + self.info["first_action"]

    def quantiles(self, observation: Any, fractions: Any) -> np.ndarray:
        """Return quantiles of the laws of all actions: `[actions, fractions]`."""
        wanted = np.asarray(fractions, np.float32)
        if wanted.ndim > 1 or not ((wanted > 0) & (wanted < 1)).all():
            raise ValueError(f"fractions = {fractions} is not allowed: between 0 and 1")
        flat, size = np.atleast_1d(wanted), self.info["fractions"]
        # The operations take a fixed number at a time.
        padded = np.resize(flat, -(-len(flat) // size) * size).reshape(-1, size)

        def one(seen: np.ndarray) -> np.ndarray:
            parts = [self._run("quantiles", seen, part)[0] for part in padded]
            return np.concatenate(parts, axis=-1)[:, : len(flat)].reshape(-1, *wanted.shape)

        return self._over(observation, one)

    def _over(self, observation: Any, one: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        shape = tuple(self.info["observation"]["shape"])
        seen = np.asarray(_flattened(self.info["observation"], observation))
        if seen.shape[seen.ndim - len(shape) :] != shape or seen.ndim - len(shape) > 1:
            raise ValueError(f"observation has shape {seen.shape}: {shape} or a batch is needed")
        seen = seen.astype(self.info["observation"]["dtype"])
        return one(seen) if seen.shape == shape else np.stack([one(each) for each in seen])

    def _run(self, name: str, *inputs: np.ndarray) -> list[Any]:
        with np.errstate(all="ignore"):
            return _evaluate(self.info["graphs"][name], inputs, self._arrays)


def _flattened(observation: Mapping[str, Any], value: Any) -> Any:
    """Return a Dict, a Tuple or a number as the array that agents see."""
    slots = observation["slots"]
    if not slots or not (isinstance(value, Mapping | tuple) or np.ndim(value) == 0):
        return value
    pieces = []
    for slot in slots:
        piece = value
        for step in slot["path"]:
            piece = piece[step[1:]] if step[0] == "." else piece[int(step[1:-1])]
        flat = np.asarray(piece).reshape(-1)
        if slot["counts"]:
            start = slot["start"] or [0] * len(flat)
            ones = [
                np.arange(n) == c - s for c, n, s in zip(flat, slot["counts"], start, strict=True)
            ]
            flat = np.concatenate(ones)
        kind = slot["seen"]["dtype"]
        pieces.append(flat.astype(kind).view(np.uint8) if observation["packed"] else flat)
    return np.concatenate(pieces)


def _evaluate(
    graph: Mapping[str, Any], inputs: Sequence[Any], arrays: Mapping[str, np.ndarray]
) -> list[Any]:
    """Apply a list of operations; values are known by number, stored arrays by name."""
    values: dict[Any, Any] = dict(zip(graph["inputs"], inputs, strict=True))

    def get(ref: Any) -> Any:
        return arrays[ref] if isinstance(ref, str) else values[ref]

    for op, params, sources, targets, dtypes in graph["nodes"]:
        given = [get(ref) for ref in sources]
        if op in _LOOPS:
            found = _LOOPS[op](params, given, arrays)
        elif op in OPERATIONS:
            result = OPERATIONS[op](params, *given)
            found = result if isinstance(result, list) else [result]
        else:
            raise ValueError(f"this reader does not know the operation {op!r}")
        for target, dtype, array in zip(targets, dtypes, found, strict=True):
            values[target] = np.asarray(array, dtype)
    return [get(ref) for ref in graph["outputs"]]


def _scan(params: Mapping[str, Any], given: list[Any], arrays: Any) -> list[Any]:
    consts, carried, rounds = params["consts"], params["carry"], params["length"]
    if rounds > _MOST_ROUNDS:
        raise ValueError(f"a loop of {rounds} rounds is too long")
    fixed, carry, rows = given[:consts], given[consts : consts + carried], given[consts + carried :]
    collected = []
    for i in range(rounds)[:: -1 if params["reverse"] else 1]:
        found = _evaluate(params["graph"], [*fixed, *carry, *(row[i] for row in rows)], arrays)
        carry = found[:carried]
        collected.append(found[carried:])
    collected = collected[:: -1 if params["reverse"] else 1]
    return [*carry, *(np.stack(column) for column in zip(*collected, strict=True))]


def _while(params: Mapping[str, Any], given: list[Any], arrays: Any) -> list[Any]:
    tests, steps = params["test_consts"], params["step_consts"]
    test, step, carry = given[:tests], given[tests : tests + steps], given[tests + steps :]
    for _ in range(_MOST_ROUNDS):
        if not _evaluate(params["test"], [*test, *carry], arrays)[0]:
            return carry
        carry = _evaluate(params["step"], [*step, *carry], arrays)
    raise ValueError("a loop does not end")


def _cond(params: Mapping[str, Any], given: list[Any], arrays: Any) -> list[Any]:
    which = min(max(int(given[0]), 0), len(params["graphs"]) - 1)
    return _evaluate(params["graphs"][which], given[1:], arrays)


_LOOPS = {"scan": _scan, "while": _while, "cond": _cond}
