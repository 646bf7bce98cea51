"""Experience replay for environments that run in Python: rings in NumPy, allocated up front."""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from umdqn.loops.rings import Rows, put_rows, ring_rows
from umdqn.types import EnvSpec, Observation, Transition, UmdqnError

# Room for the frames that are no transitions: those before and after an episode.
_SPARE_FRAMES = 20


class Memory(abc.ABC):
    """A ring of transitions of several copies of an environment."""

    @abc.abstractmethod
    def start(self, copy: int, observation: np.ndarray) -> None:
        """A new episode of one copy begins."""

    @abc.abstractmethod
    def add(
        self,
        copy: int,
        action: int,
        reward: float,
        discount: float,
        observation: np.ndarray,
    ) -> None:
        """One copy went on to `observation`."""

    @abc.abstractmethod
    def sample(self, random: np.random.Generator, count: int) -> Transition:
        """Transitions drawn uniformly with replacement."""

    @property
    @abc.abstractmethod
    def nbytes(self) -> int:
        """Bytes that the memory takes."""

    @property
    @abc.abstractmethod
    def entered(self) -> list[int]:
        """How many rows ever came into each of its rings."""

    @property
    @abc.abstractmethod
    def room(self) -> list[int]:
        """How many rows each ring holds."""

    @abc.abstractmethod
    def rows(self, first: Sequence[int], last: Sequence[int]) -> Rows:
        """The rows that came between those counts, if all are still there, by ring and name."""

    @abc.abstractmethod
    def restore(self, entered: Sequence[int], rows: Iterable[Rows]) -> None:
        """Hold again what was held when so many rows had come, from pieces, oldest first."""


def make_memory(spec: EnvSpec, capacity: int, copies: int) -> Memory:
    """The memory that suits an environment's observations; all of it is taken at once."""
    kind = FrameMemory if is_picture(spec.observation) else PairMemory
    try:
        return kind(spec.observation, capacity, copies)
    except MemoryError:
        size = needed_bytes(spec, capacity) / 1e9
        raise UmdqnError(
            f"replay.capacity = {capacity} is not allowed: {size:.1f} GB of memory are not there"
        ) from None


def needed_bytes(spec: EnvSpec, capacity: int) -> int:
    """About how many bytes a memory takes."""
    seen = spec.observation
    size = math.prod(seen.shape) * np.dtype(seen.dtype).itemsize
    if is_picture(seen):
        return size // seen.stack * (capacity + capacity // _SPARE_FRAMES)
    return 2 * size * capacity


def is_picture(observation: Observation) -> bool:
    """Whether observations are large enough to be kept once only."""
    return len(observation.shape) == 3


def _batch(*arrays: Any) -> Transition:
    """A batch in NumPy, which compiled programs take as it is."""
    return Transition(*arrays)


def _taken(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """An array whose memory is really there, not only promised."""
    array = np.empty(shape, dtype)
    array.fill(0)
    return array


class PairMemory(Memory):
    """Both observations of every transition, first in first out."""

    def __init__(self, observation: Observation, capacity: int, copies: int):
        shape = (capacity, *observation.shape)
        self._before = _taken(shape, observation.dtype)
        self._after = _taken(shape, observation.dtype)
        self._actions = np.zeros(capacity, np.int32)
        self._rewards = np.zeros(capacity, np.float32)
        self._discounts = np.zeros(capacity, np.float32)
        self._last = np.zeros((copies, *observation.shape), observation.dtype)
        self._capacity, self._added = capacity, 0

    def start(self, copy: int, observation: np.ndarray) -> None:
        self._last[copy] = observation

    def add(
        self, copy: int, action: int, reward: float, discount: float, observation: np.ndarray
    ) -> None:
        slot = self._added % self._capacity
        self._before[slot], self._after[slot] = self._last[copy], observation
        self._actions[slot] = action
        self._rewards[slot], self._discounts[slot] = reward, discount
        self._last[copy] = observation
        self._added += 1

    def sample(self, random: np.random.Generator, count: int) -> Transition:
        rows = random.integers(0, min(self._added, self._capacity), count)
        return _batch(
            self._before[rows],
            self._actions[rows],
            self._rewards[rows],
            self._discounts[rows],
            self._after[rows],
        )

    @property
    def nbytes(self) -> int:
        return self._before.nbytes + self._after.nbytes + 12 * self._capacity

    @property
    def _arrays(self) -> dict[str, np.ndarray]:
        return {
            "before": self._before,
            "after": self._after,
            "actions": self._actions,
            "rewards": self._rewards,
            "discounts": self._discounts,
        }

    @property
    def entered(self) -> list[int]:
        return [self._added]

    @property
    def room(self) -> list[int]:
        return [self._capacity]

    def rows(self, first: Sequence[int], last: Sequence[int]) -> Rows:
        return ring_rows(self._arrays, 0, first[0], last[0]) | {"last": self._last.copy()}

    def restore(self, entered: Sequence[int], rows: Iterable[Rows]) -> None:
        self._added = entered[0]
        for piece in rows:
            put_rows(self._arrays, 0, piece)
            self._last[:] = piece["last"]


class FrameMemory(Memory):
    """Every picture once, and of stacked pictures every frame; stacks are put together when drawn.

    Each copy has a ring of frames. An episode enters all frames of its first stack, then one frame
    a step; the observation of a slot is the slot's frame and those right before it. A slot is a
    transition if the episode went on from it.
    """

    def __init__(self, observation: Observation, capacity: int, copies: int):
        self._stack = observation.stack
        frame = observation.shape[1:] if self._stack > 1 else observation.shape
        slots = -(-(capacity + capacity // _SPARE_FRAMES) // copies)
        self._slots = max(slots, 4 * self._stack)
        shape = (copies, self._slots)
        self._frames = _taken((*shape, *frame), observation.dtype)
        self._actions = np.zeros(shape, np.int32)
        self._rewards = np.zeros(shape, np.float32)
        self._discounts = np.zeros(shape, np.float32)
        self._goes_on = np.zeros(shape, bool)
        self._head = np.zeros(copies, np.int64)
        """Frames that each copy ever entered."""

    def _arrays(self, copy: int) -> dict[str, np.ndarray]:
        return {
            "frames": self._frames[copy],
            "actions": self._actions[copy],
            "rewards": self._rewards[copy],
            "discounts": self._discounts[copy],
            "goes_on": self._goes_on[copy],
        }

    @property
    def entered(self) -> list[int]:
        return self._head.tolist()

    @property
    def room(self) -> list[int]:
        return [self._slots] * len(self._head)

    def rows(self, first: Sequence[int], last: Sequence[int]) -> Rows:
        found: Rows = {}
        for copy, (begin, end) in enumerate(zip(first, last, strict=True)):
            # Whether the newest frame went on became known only after it had come. Where the slot
            # before the first row is the newest one again, its row comes once more: no harm.
            found |= ring_rows(self._arrays(copy), copy, max(begin - 1, 0), end)
        return found

    def restore(self, entered: Sequence[int], rows: Iterable[Rows]) -> None:
        self._head[:] = entered
        for piece in rows:
            for copy in range(len(self._head)):
                put_rows(self._arrays(copy), copy, piece)
        for copy, head in enumerate(self.entered):
            # Stacks that reached back to frames which newer ones replaced are gone.
            gone = (head + np.arange(self._stack - 1)) % self._slots
            if head >= self._slots:
                self._goes_on[copy, gone] = False

    def start(self, copy: int, observation: np.ndarray) -> None:
        for frame in self._frames_of(observation):
            self._enter(copy, frame)

    def _frames_of(self, observation: np.ndarray) -> np.ndarray:
        """Frames, the newest last."""
        return observation if self._stack > 1 else observation[None]

    def _enter(self, copy: int, frame: np.ndarray) -> None:
        slot = self._head[copy] % self._slots
        self._frames[copy, slot] = frame
        self._goes_on[copy, slot] = False
        # Stacks that reached back to the frame which this one replaced are gone.
        gone = (slot + np.arange(1, self._stack)) % self._slots
        self._goes_on[copy, gone] = False
        self._head[copy] += 1

    def add(
        self, copy: int, action: int, reward: float, discount: float, observation: np.ndarray
    ) -> None:
        slot = (self._head[copy] - 1) % self._slots
        self._enter(copy, self._frames_of(observation)[-1])
        self._actions[copy, slot] = action
        self._rewards[copy, slot], self._discounts[copy, slot] = reward, discount
        self._goes_on[copy, slot] = True

    def sample(self, random: np.random.Generator, count: int) -> Transition:
        copies, slots = np.empty(0, np.int64), np.empty(0, np.int64)
        filled = np.minimum(self._head, self._slots).max()
        while len(slots) < count:
            copy = random.integers(0, len(self._head), 2 * count)
            slot = random.integers(0, filled, 2 * count)
            good = self._goes_on[copy, slot]
            copies, slots = np.append(copies, copy[good]), np.append(slots, slot[good])
        copies, slots = copies[:count], slots[:count]
        return _batch(
            self._stacks(copies, slots),
            self._actions[copies, slots],
            self._rewards[copies, slots],
            self._discounts[copies, slots],
            self._stacks(copies, slots + 1),
        )

    def _stacks(self, copies: np.ndarray, slots: np.ndarray) -> np.ndarray:
        back = np.arange(1 - self._stack, 1)
        stacks = self._frames[copies[:, None], (slots[:, None] + back) % self._slots]
        return stacks if self._stack > 1 else stacks[:, 0]

    @property
    def nbytes(self) -> int:
        return self._frames.nbytes + 13 * self._actions.size
