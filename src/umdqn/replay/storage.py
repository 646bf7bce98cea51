"""Where transitions are kept: one ring per copy of the environment, side by side in flat arrays."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from umdqn.errors import UmdqnError
from umdqn.replay.rings import Random, Rings, Rows, put_rows, ring_rows
from umdqn.replay.transition import Transition
from umdqn.specs import Observation

NUMBERS = 5
"""Action, reward, discount, whether the episode ended here (terminated or truncated), and the
action of a fixed policy in the next state, or -1."""


@dataclasses.dataclass(frozen=True)
class Storage(abc.ABC):
    """The layout of a memory; the arrays themselves are a value, `Rings`.

    Slot `i` of copy `c` is row `c * slots + i` of every array. `head` counts the rows that each
    copy ever entered.
    """

    observation: Observation
    slots: int
    copies: int

    @abc.abstractmethod
    def empty(self, arrays: ModuleType) -> Rings:
        """Return empty rings in an array library, `numpy` or `jax.numpy`."""

    @abc.abstractmethod
    def begin(self, rings: Rings, copy: int, observation: Any) -> Rings:
        """Start the first episode of a copy, or an episode after an interruption."""

    @abc.abstractmethod
    def add(self, rings: Rings, copy: int, seen: Transition, last: Any, following: Any) -> Rings:
        """Store what a step of one copy brought.

        `last` says whether the episode ended with it, and `following` is the observation that the
        copy continues from: the first one of a new episode if so, else the next observation.
        """

    @abc.abstractmethod
    def draw(self, rings: Rings, random: Random, count: int) -> Any:
        """Return rows of stored transitions, drawn uniformly with replacement."""

    @abc.abstractmethod
    def before(self, rings: Rings, index: Any) -> Any:
        """Return the observations before the transitions of given rows."""

    @abc.abstractmethod
    def after(self, rings: Rings, index: Any) -> Any:
        """Return the observations after the transitions of given rows."""

    @abc.abstractmethod
    def known(self, rings: Rings, index: Any) -> Any:
        """Return whether rows hold transitions, given that each row before does."""

    def transitions(self, rings: Rings, index: Any, n_step: int = 1) -> Transition:
        """Return the transitions of given rows, or of up to `n_step` rows from each one on.

        They stop at the end of the episode and, with a fixed policy, before the first action that
        was not the policy's.
        """
        numbers = rings["numbers"]
        action, reward, discount, last, followed = numbers[index].T
        end = index
        for _ in range(n_step - 1):
            ahead = end - end % self.slots + (end % self.slots + 1) % self.slots
            taken, more, factor, ends, following = numbers[ahead].T
            goes = (last == 0) & self.known(rings, ahead) & ((followed < 0) | (taken == followed))
            reward = reward + goes * discount * more
            discount = discount * (1 + goes * (factor - 1))
            # Where it stops once, it stops for good.
            last = 1 - goes * (1 - ends)
            end = end + goes * (ahead - end)
            followed = followed + goes * (following - followed)
        return Transition(
            self.before(rings, index),
            action.astype(np.int32),
            reward,
            discount,
            self.after(rings, end),
            followed.astype(np.int32),
        )

    @abc.abstractmethod
    def kept(self, rings: Rings, copy: int, first: int, last: int) -> Rows:
        """Return a copy's rows from one count to another, as files keep them."""

    @abc.abstractmethod
    def repaired(self, rings: Rings) -> None:
        """Correct in NumPy rings what became known only after a row was saved."""

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        rings = dataclasses.replace(self, slots=1, copies=1).empty(np)
        return sum(array.nbytes for name, array in rings.items() if name != "head")

    @property
    def nbytes(self) -> int:
        """Bytes of all rings."""
        return self.row_bytes * self.slots * self.copies

    def restore(self, entered: Sequence[int], pieces: Iterable[Rows]) -> Rings:
        """Return NumPy rings that hold what they held when so many rows had been entered."""
        rings = self.empty(np)
        if len(entered) != self.copies:
            raise UmdqnError(f"the saved replay memory is corrupt: it has {len(entered)} rings")
        rings["head"][:] = entered
        for piece in pieces:
            for copy in range(self.copies):
                put_rows(self.of_copy(rings, copy), copy, piece, entered[copy])
        self.repaired(rings)
        return rings

    def of_copy(self, rings: Rings, copy: int) -> Rings:
        """Return a copy's part of every array."""
        part = slice(copy * self.slots, (copy + 1) * self.slots)
        return {name: ring[part] for name, ring in rings.items() if name != "head"}

    def _kept(self, rings: Rings, copy: int, first: int, last: int) -> Rows:
        arrays = {name: np.asarray(a) for name, a in self.of_copy(rings, copy).items()}
        return ring_rows(arrays, copy, first, last)

    def _slot(self, copy: int, count: Any) -> Any:
        """The row of a copy's entry with a given count."""
        return copy * self.slots + count % self.slots


def numbers_of(arrays: ModuleType, seen: Transition, last: Any) -> Any:
    """Return the row of numbers that describes a transition."""
    followed = -1 if seen.next_action is None else seen.next_action
    row = (seen.action, seen.reward, seen.discount, last, followed)
    return arrays.stack([arrays.asarray(number, arrays.float32) for number in row])
