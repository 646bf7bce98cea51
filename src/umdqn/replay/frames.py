"""Storage of pictures: every frame once; stacks are put together when drawn."""

from __future__ import annotations

import dataclasses
from types import ModuleType
from typing import Any

import jax.numpy as jnp
import numpy as np

from umdqn.replay.pairs import filled
from umdqn.replay.rings import Random, Rings, Rows, draw_valid, fill, put
from umdqn.replay.storage import NUMBERS, Storage, numbers_of
from umdqn.replay.transition import Transition


@dataclasses.dataclass(frozen=True)
class FrameStorage(Storage):
    """Every row is a frame, and the transition that starts from it if there is one.

    An episode enters all frames of its first stack, then one frame per step. The observation of a
    row is its frame and those right before it.
    """

    @property
    def _frame(self) -> tuple[int, ...]:
        shape = self.observation.shape
        return shape[1:] if self.observation.stack > 1 else shape

    def empty(self, arrays: ModuleType) -> Rings:
        count = self.slots * self.copies
        return {
            "frames": filled(arrays, (count, *self._frame), np.dtype(self.observation.dtype)),
            "numbers": filled(arrays, (count, NUMBERS), np.dtype(np.float32)),
            "valid": arrays.zeros(count, bool),
            "head": arrays.zeros(self.copies, np.int64 if arrays is np else np.int32),
        }

    def begin(self, rings: Rings, copy: int, observation: Any) -> Rings:
        return self._enter_stack(rings, copy, observation, 1)

    def add(self, rings: Rings, copy: int, seen: Transition, last: Any, following: Any) -> Rings:
        head = rings["head"][copy]
        library = np if isinstance(rings["numbers"], np.ndarray) else jnp
        current, entered = self._slot(copy, head - 1), self._slot(copy, head)
        newest = self._frames_of(seen.next_observation)[-1]
        rings = {
            "frames": put(rings["frames"], entered, newest),
            "numbers": put(rings["numbers"], current, numbers_of(library, seen, last)),
            "valid": put(put(rings["valid"], entered, False), current, True),
            "head": put(rings["head"], copy, head + 1),
        }
        # Always written, and counted only where the episode ended: programs cannot skip a write.
        return self._enter_stack(rings, copy, following, last)

    def _enter_stack(self, rings: Rings, copy: int, observation: Any, counted: Any) -> Rings:
        """Enter all frames of an observation; they count if `counted` is true."""
        head, stack = rings["head"][copy], self.observation.stack
        frames = rings["frames"]
        for number, frame in enumerate(self._frames_of(observation)):
            frames = put(frames, self._slot(copy, head + number), frame)
        written = self._slot(copy, head + np.arange(stack))
        head = head + stack * counted
        valid = fill(fill(rings["valid"], written, False), self._stale(copy, head), False)
        return rings | {
            "frames": frames,
            "valid": valid,
            "head": put(rings["head"], copy, head),
        }

    def _stale(self, copy: int, head: Any) -> Any:
        """Rows whose stacks reach back to frames that newer ones have replaced, or will next."""
        return self._slot(copy, head + np.arange(2 * self.observation.stack - 1))

    def _frames_of(self, observation: Any) -> Any:
        """Frames of an observation, the newest last."""
        return observation if self.observation.stack > 1 else observation[None]

    def draw(self, rings: Rings, random: Random, count: int) -> Any:
        valid = rings["valid"]
        library = np if isinstance(valid, np.ndarray) else jnp
        # As many slots of every copy as the fullest has filled.
        filled_slots = library.minimum(library.max(rings["head"]), self.slots)

        def index_of(chosen: Any) -> Any:
            return chosen % self.copies * self.slots + chosen // self.copies

        return draw_valid(random, filled_slots * self.copies, count, valid, index_of)

    def rows(self, rings: Rings, index: Any) -> Transition:
        action, reward, discount, _, followed = rings["numbers"][index].T
        return Transition(
            self._stacks(rings, index, 0),
            action.astype(np.int32),
            reward,
            discount,
            self._stacks(rings, index, 1),
            followed.astype(np.int32),
        )

    def _stacks(self, rings: Rings, index: Any, ahead: int) -> Any:
        stack = self.observation.stack
        first, slot = index - index % self.slots, index % self.slots
        back = np.arange(1 - stack, 1) + ahead
        stacks = rings["frames"][first[:, None] + (slot[:, None] + back) % self.slots]
        return stacks if stack > 1 else stacks[:, 0]

    def kept(self, rings: Rings, copy: int, first: int, last: int) -> Rows:
        # The newest frame's transition became known only after the frame had been entered. Where
        # the row before the first is the newest one again, it is saved twice: no harm.
        return self._kept(rings, copy, max(first - 1, 0), last)

    def repaired(self, rings: Rings) -> None:
        for copy, head in enumerate(rings["head"].tolist()):
            rings["valid"][self._stale(copy, head)] = False
