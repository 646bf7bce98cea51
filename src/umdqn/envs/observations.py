"""What observation spaces of Gymnasium become: one array, checked on the way."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeGuard

import numpy as np
from gymnasium import spaces

from umdqn.errors import UmdqnError
from umdqn.layouts import join, joined, one_hot
from umdqn.specs import UNBOUNDED, Observation, Slot

# Longest one-hot vector: memories keep thousands of observations.
_MOST_CHOICES = 100_000
# How far beyond its bounds a number may be, relative to them: environments round.
_ROUNDING = 1e-5


class Unexpected(Exception):
    """An observation that its space does not allow."""

    def __init__(self, field: str, expected: str, actual: Any):
        self.field, self.expected, self.actual = field, expected, actual
        super().__init__(f"{field} must be {expected}")


def observation_of(space: spaces.Space, name: str) -> Observation:
    """Return shape, type and bounds of observations; raise if agents cannot read them.

    Choices become one-hot vectors, and the members of a Dict or Tuple are put one after the other,
    as Stable-Baselines3 does.
    """
    if _is_box(space):
        return _numbers(space)
    slots = [_slot(path, leaf, name) for path, leaf in _members(space, (), name)]
    if not slots:
        raise UmdqnError(f"environment {name!r}: observation_space {space} is empty")
    return joined(slots)


def one_hot_observation(count: int) -> Observation:
    """Return what an agent sees of one of `count` states: a vector with a single 1."""
    return joined([_choices((), (count,))])


class Reader:
    """Turns the observations of an environment into arrays; raises `Unexpected`."""

    def __init__(self, space: spaces.Space, observation: Observation, bounded: bool = True):
        self._observation = observation
        leaves = list(_members(space, (), ""))
        self._leaves = [(path, _Leaf(leaf, path, bounded)) for path, leaf in leaves]
        single = [leaf for path, leaf in self._leaves if not path]
        self._whole = single[0] if single else None

    def __call__(self, value: Any) -> np.ndarray:
        if self._whole is not None:
            return self._whole.read(value).reshape(self._observation.shape)
        pieces = [leaf.read(self._found(path, value)).ravel() for path, leaf in self._leaves]
        return join(self._observation, pieces)

    def _found(self, path: tuple[str, ...], value: Any) -> Any:
        for depth, step in enumerate(path):
            keyed = step[0] == "."
            field = _field(path[:depth])
            if keyed and not (isinstance(value, dict) and step[1:] in value):
                raise Unexpected(field, f"a dict with {step[1:]!r}", value)
            index = -1 if keyed else int(step[1:-1])
            if not keyed and not (isinstance(value, tuple | list) and index < len(value)):
                raise Unexpected(field, f"a tuple of more than {index} members", value)
            value = value[step[1:]] if keyed else value[index]
        return value


class _Leaf:
    """One member of a space that has no members of its own."""

    def __init__(self, space: spaces.Space, path: tuple[str, ...], bounded: bool):
        self._space, self._field = space, _field(path)
        self._shape, self._dtype = tuple(space.shape or ()), np.dtype(space.dtype)
        self._slot = None if _is_numeric(space) else _slot(path, space, "")
        self._low, self._high = _edges(space) if bounded else (None, None)

    def read(self, value: Any) -> np.ndarray:
        """Return a copy of the value, or the one-hot vectors of its choices."""
        if self._slot is None:
            return self._read_numbers(value)
        found = self._whole_numbers(value)
        if found is not None:
            vector = one_hot(self._slot, found.reshape(-1))
            if vector.sum() == len(self._slot.counts):
                return vector
        raise Unexpected(self._field, f"a member of {self._space}", value)

    def _whole_numbers(self, value: Any) -> np.ndarray | None:
        """Return an array of whole numbers in the space's shape, or None."""
        if isinstance(value, bool) or not isinstance(value, int | np.integer | np.ndarray | list):
            return None
        found = np.asarray(value)
        return found if found.dtype.kind in "iu" and found.shape == self._shape else None

    def _read_numbers(self, value: Any) -> np.ndarray:
        if isinstance(self._space, spaces.MultiBinary):
            # Like Gymnasium, which looks at the numbers only.
            bits = np.asarray(value) if isinstance(value, np.ndarray | list) else None
            if bits is not None and self._space.contains(bits):
                return bits.astype(self._dtype)
            raise Unexpected(self._field, f"a member of {self._space}", value)
        good = isinstance(value, np.ndarray) and value.shape == self._shape
        if not (good and value.dtype == self._dtype):
            raise Unexpected(self._field, f"{self._dtype} of shape {self._shape}", value)
        if self._dtype.kind == "f" and not np.isfinite(value).all():
            raise Unexpected(self._field, "finite numbers", value)
        if self._low is not None and ((value < self._low) | (value > self._high)).any():
            self._refuse_outside(value)
        return value.copy()

    def _refuse_outside(self, value: np.ndarray) -> None:
        space: Any = self._space
        where = np.argwhere((value < self._low) | (value > self._high))[0]
        low, high = space.low[tuple(where)], space.high[tuple(where)]
        raise Unexpected(
            self._field + (str(where.tolist()) if value.shape else ""),
            f"from {low:g} to {high:g}, its bounds in the Box (the wrapper loose-bounds lifts "
            "them, clip-observation clips)",
            value[tuple(where)].item(),
        )


def _field(path: tuple[str, ...]) -> str:
    steps = [f"[{step[1:]!r}]" if step[0] == "." else step for step in path]
    return "observation" + "".join(steps)


def _edges(space: spaces.Space) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return what no number may pass, or None where there is nothing to check."""
    if not _is_box(space) or np.dtype(space.dtype).kind == "b":
        return None, None
    kind = np.dtype(space.dtype)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        if np.all(space.low == info.min) and np.all(space.high == info.max):
            return None, None
        return space.low, space.high
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    if np.isneginf(low).all() and np.isposinf(high).all():
        return None, None
    # Around 0, relative to the width: most numbers come from others of about that size.
    small = np.minimum(high - low, 1.0)
    return (
        low - _ROUNDING * np.where(low == 0, small, np.abs(low)),
        high + _ROUNDING * np.where(high == 0, small, np.abs(high)),
    )


def _members(
    space: spaces.Space, path: tuple[str, ...], name: str
) -> Iterator[tuple[tuple[str, ...], spaces.Space]]:
    """Yield the members of a space that have no members of their own, with their paths."""
    if isinstance(space, spaces.Dict):
        for key, member in space.spaces.items():
            if not isinstance(key, str):
                raise UmdqnError(
                    f"environment {name!r}: keys of a Dict space must be text, not {key!r}"
                )
            yield from _members(member, (*path, f".{key}"), name)
    elif isinstance(space, spaces.Tuple):
        for index, member in enumerate(space.spaces):
            yield from _members(member, (*path, f"[{index}]"), name)
    else:
        yield path, space


def _is_box(space: spaces.Space) -> TypeGuard[spaces.Box]:
    return isinstance(space, spaces.Box) and np.dtype(space.dtype).kind in "fiub"


def _is_numeric(space: spaces.Space) -> bool:
    return isinstance(space, spaces.MultiBinary) or _is_box(space)


def _slot(path: tuple[str, ...], space: spaces.Space, name: str) -> Slot:
    if isinstance(space, spaces.MultiBinary):
        size = math.prod(space.shape)
        seen = Observation((size,), np.dtype(space.dtype).name, (-1.0,), (1.0,))
        return Slot(path, seen, tuple(space.shape))
    if _is_box(space):
        seen = _numbers(space)
        # Compiled programs know no numbers of eight bytes.
        dtype = "float32" if np.dtype(space.dtype).itemsize > 4 else seen.dtype
        shape = seen.shape if seen.is_picture else (math.prod(seen.shape),)
        return Slot(path, Observation(shape, dtype, seen.low, seen.high), tuple(space.shape))
    if isinstance(space, spaces.Discrete):
        return _choices(path, (_count(space.n, name),), (int(space.start),))
    if isinstance(space, spaces.MultiDiscrete):
        counts = tuple(_count(count, name) for count in space.nvec.ravel())
        _count(sum(counts), name)
        starts = tuple(int(start) for start in np.ravel(space.start))
        return _choices(path, counts, starts, tuple(space.shape))
    where = f" at {''.join(path).removeprefix('.')!r}" if path else ""
    raise UmdqnError(
        f"environment {name!r}: observation_space must be a Box, Discrete, MultiDiscrete or "
        f"MultiBinary, or a Dict or Tuple of these, not {space}{where}"
    )


def _count(count: Any, name: str) -> int:
    if count > _MOST_CHOICES:
        raise UmdqnError(
            f"environment {name!r}: observation_space has {int(count):,} choices, and one-hot "
            f"vectors have at most {_MOST_CHOICES:,} entries"
        )
    return int(count)


def _choices(
    path: tuple[str, ...],
    counts: tuple[int, ...],
    start: tuple[int, ...] = (),
    shape: tuple[int, ...] = (),
) -> Slot:
    # Bounds around 0, so that input scaling leaves zeros as they are; a byte per entry, since
    # memories keep hundreds of thousands of them.
    seen = Observation((sum(counts),), "bool", (-1.0,), (1.0,))
    return Slot(path, seen, shape, counts, start if any(start) else ())


def _numbers(space: spaces.Box) -> Observation:
    low, high = (_bounds(bound) for bound in (space.low, space.high))
    return Observation(tuple(space.shape), np.dtype(space.dtype).name, low, high)


def _bounds(bound: np.ndarray) -> tuple[float, ...]:
    """Return the bounds of all entries; a single number if they are all equal."""
    flat = np.clip(np.asarray(bound, np.float64).reshape(-1), -UNBOUNDED, UNBOUNDED)
    return (float(flat[0]),) if np.all(flat == flat[0]) else tuple(flat.tolist())
