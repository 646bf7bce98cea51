"""Made-up experience for tests of memories: every observation and reward has a number."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from umdqn.replay.frames import FrameStorage
from umdqn.replay.memory import Memory
from umdqn.replay.transition import Transition, host_transition
from umdqn.specs import Observation

LAYOUTS = {
    "pairs": Observation((3,), "float32"),
    "frames": Observation((2, 2, 3), "uint16"),
    "stacked frames": Observation((4, 2, 2), "uint16", stack=4),
}

PLANS = st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=8)
"""Episodes of a copy, again and again: length, and whether it terminates or is truncated."""


class Seen(NamedTuple):
    """One step of one copy, as memories get it."""

    transition: Transition
    last: np.bool_
    following: np.ndarray


class Experience:
    """Copies of an environment that step together; rewards are unique."""

    def __init__(self, observation: Observation, plans: list[list[tuple[int, bool]]]):
        self._seen, self._stamp = observation, 0
        self._copies = [self._play(plan) for plan in plans]
        self.firsts = [next(copy) for copy in self._copies]
        self.entered: list[list[Seen]] = [[] for _ in plans]

    def steps(self, count: int) -> Iterator[list[Seen]]:
        """The next steps of all copies."""
        for _ in range(count):
            seen = [next(copy) for copy in self._copies]
            for entered, one in zip(self.entered, seen, strict=True):
                entered.append(one)
            yield seen

    @property
    def by_reward(self) -> dict[float, Seen]:
        return {float(one.transition.reward): one for copy in self.entered for one in copy}

    def _fresh(self) -> np.ndarray:
        """A frame, or a whole observation where frames are not stacked, that nothing else has."""
        self._stamp += 1
        shape = self._seen.shape[1:] if self._seen.stack > 1 else self._seen.shape
        return np.full(shape, self._stamp, self._seen.dtype)

    def _first(self) -> np.ndarray:
        if self._seen.stack == 1:
            return self._fresh()
        blank = np.zeros((self._seen.stack, *self._seen.shape[1:]), self._seen.dtype)
        return self._next(blank)

    def _next(self, before: np.ndarray) -> np.ndarray:
        return np.concatenate([before[1:], self._fresh()[None]]) if self._stacks else self._fresh()

    @property
    def _stacks(self) -> bool:
        return self._seen.stack > 1

    def _play(self, plan: list[tuple[int, bool]]) -> Iterator[Any]:
        before = self._first()
        yield before
        while True:
            for length, terminates in plan:
                for step in range(length):
                    after, last = self._next(before), step == length - 1
                    discount = np.float32(0.0 if last and terminates else 0.9)
                    reward = np.float32(self._stamp)
                    seen = host_transition(before, np.int64(step % 3), reward, discount, after)
                    before = self._first() if last else after
                    yield Seen(seen, np.bool_(last), before)


def begun(memory: Memory, rings: Any, experience: Experience) -> Any:
    """Rings after the first observations."""
    for copy, first in enumerate(experience.firsts):
        rings = memory.begin(rings, copy, first)
    return rings


def enter(memory: Memory, rings: Any, experience: Experience, steps: int) -> Any:
    """Rings after further steps."""
    for seen in experience.steps(steps):
        for copy, one in enumerate(seen):
            rings = memory.add(rings, copy, *one)
    return rings


def held(memory: Memory, experience: Experience) -> set[float]:
    """Rewards of the transitions that a memory must hold, by counting what was entered.

    Pairs: the newest that fit. Frames: an episode enters its first stack, then a frame per step;
    the oldest `2 stack - 1` rows are lost, because their stacks reach back to frames that are
    overwritten when the next step ends an episode.
    """
    storage, kept = memory.storage, set()
    for entered in experience.entered:
        rewards = [float(one.transition.reward) for one in entered]
        if not isinstance(storage, FrameStorage):
            kept |= set(rewards[-storage.slots :])
            continue
        stack = storage.observation.stack
        rows, head = [], stack
        for one in entered:
            rows.append(head - 1)
            head += 1 + stack * bool(one.last)
        oldest = head - storage.slots + 2 * stack - 1
        kept |= {reward for row, reward in zip(rows, rewards, strict=True) if row >= oldest}
    return kept
