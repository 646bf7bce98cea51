"""Storage of vectors: both observations of every transition."""

from __future__ import annotations

import dataclasses
from types import ModuleType
from typing import Any

import jax.numpy as jnp
import numpy as np

from umdqn.replay.rings import Random, Rings, Rows, draw, put
from umdqn.replay.storage import NUMBERS, Storage, numbers_of
from umdqn.replay.transition import Transition


@dataclasses.dataclass(frozen=True)
class PairStorage(Storage):
    """Every row is a whole transition."""

    def empty(self, arrays: ModuleType) -> Rings:
        count, shape = self.slots * self.copies, self.observation.shape
        dtype = np.dtype(self.observation.dtype)
        return {
            "before": filled(arrays, (count, *shape), dtype),
            "after": filled(arrays, (count, *shape), dtype),
            "numbers": filled(arrays, (count, NUMBERS), np.dtype(np.float32)),
            "head": arrays.zeros(self.copies, np.int64 if arrays is np else np.int32),
        }

    def begin(self, rings: Rings, copy: int, observation: Any) -> Rings:
        # An interruption ended the episode of the newest row, if there is one.
        numbers, head = rings["numbers"], rings["head"][copy]
        newest = self._slot(copy, head - 1)
        row = numbers[newest] * np.array([1, 1, 1, 0, 1], np.float32)
        cut = row + np.array([0, 0, 0, 1, 0], np.float32) * (head > 0)
        return rings | {"numbers": put(numbers, newest, cut)}

    def add(self, rings: Rings, copy: int, seen: Transition, last: Any, following: Any) -> Rings:
        slot = self._slot(copy, rings["head"][copy])
        library = np if isinstance(rings["numbers"], np.ndarray) else jnp
        return {
            "before": put(rings["before"], slot, seen.observation),
            "after": put(rings["after"], slot, seen.next_observation),
            "numbers": put(rings["numbers"], slot, numbers_of(library, seen, last)),
            "head": put(rings["head"], copy, rings["head"][copy] + 1),
        }

    def draw(self, rings: Rings, random: Random, count: int) -> Any:
        # Copies step together: all rings are equally full.
        stored = (np if isinstance(rings["head"], np.ndarray) else jnp).minimum(
            rings["head"][0], self.slots
        )
        chosen = draw(random, stored * self.copies, count)
        return chosen % self.copies * self.slots + chosen // self.copies

    def before(self, rings: Rings, index: Any) -> Any:
        return rings["before"][index]

    def after(self, rings: Rings, index: Any) -> Any:
        return rings["after"][index]

    def known(self, rings: Rings, index: Any) -> Any:
        # The row after the newest one is the oldest one, or empty.
        return index % self.slots != rings["head"][index // self.slots] % self.slots

    def kept(self, rings: Rings, copy: int, first: int, last: int) -> Rows:
        return self._kept(rings, copy, first, last)

    def repaired(self, rings: Rings) -> None:
        return


def filled(arrays: ModuleType, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Return zeros whose memory is taken at once, not only promised."""
    if arrays is not np:
        return arrays.zeros(shape, dtype)
    array = np.empty(shape, dtype)
    array.fill(0)
    return array
