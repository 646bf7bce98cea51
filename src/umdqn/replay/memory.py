"""The protocol of every replay memory: add, sample, update, and rows for checkpoints."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

from umdqn.replay.frames import FrameStorage
from umdqn.replay.pairs import PairStorage
from umdqn.replay.rings import Random, Rings, Rows
from umdqn.replay.storage import Storage
from umdqn.replay.transition import Batch, Transition
from umdqn.specs import Observation

# One spare row per 20 transitions, for the frames that start no transition.
_TRANSITIONS_PER_SPARE_ROW = 20


@dataclasses.dataclass(frozen=True)
class Memory(abc.ABC):
    """How transitions are kept and drawn; what is kept is a value, `Rings`, in JAX or NumPy."""

    storage: Storage
    batch_size: int
    n_step: int

    def empty(self, arrays: ModuleType) -> Rings:
        """Return empty rings in an array library, `numpy` or `jax.numpy`."""
        return self.storage.empty(arrays)

    def begin(self, rings: Rings, copy: int, observation: Any) -> Rings:
        """Start the first episode of a copy, or an episode after an interruption."""
        return self.storage.begin(rings, copy, observation)

    def add(self, rings: Rings, copy: int, seen: Transition, last: Any, following: Any) -> Rings:
        """Store what a step of one copy brought; see `Storage.add`."""
        return self.storage.add(rings, copy, seen, last, following)

    @abc.abstractmethod
    def sample(self, rings: Rings, random: Random) -> Batch:
        """Draw a batch."""

    def transitions(self, rings: Rings, index: Any) -> Transition:
        """Return the transitions that begin at given rows, each over up to `n_step` steps."""
        return self.storage.transitions(rings, index, self.n_step)

    def update(self, rings: Rings, index: Any, losses: Any) -> Rings:
        """Record the losses of transitions that were drawn, for memories with priorities."""
        return rings

    @property
    def nbytes(self) -> int:
        """Bytes of the rings."""
        return self.storage.nbytes

    @property
    def room(self) -> list[int]:
        """Rows that each ring holds."""
        return [self.storage.slots] * self.storage.copies

    def entered(self, rings: Rings) -> list[int]:
        """Return how many rows each ring ever entered."""
        return [int(count) for count in rings["head"]]

    def rows(self, rings: Rings, first: Sequence[int], last: Sequence[int]) -> Rows:
        """Return the rows entered between those counts, as files keep them."""
        found: Rows = {}
        for copy, (begin, end) in enumerate(zip(first, last, strict=True)):
            found |= self.storage.kept(rings, copy, begin, end)
        return found

    def restore(self, entered: Sequence[int], pieces: Iterable[Rows]) -> Rings:
        """Return NumPy rings as they were when so many rows had been entered."""
        return self.storage.restore(entered, pieces)


def make_storage(observation: Observation, capacity: int, copies: int) -> Storage:
    """Return the layout that suits observations: pictures are kept once, vectors in pairs."""
    if not observation.is_picture:
        return PairStorage(observation, -(-capacity // copies), copies)
    slots = -(-(capacity + capacity // _TRANSITIONS_PER_SPARE_ROW) // copies)
    return FrameStorage(observation, max(slots, 4 * observation.stack), copies)
