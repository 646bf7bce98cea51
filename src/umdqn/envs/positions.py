"""Where copies of an environment are in their episodes, told by seeds and actions."""

from __future__ import annotations

from typing import NamedTuple

MOST_REPLAYED = 100_000
"""Longest episode that a resumed run replays; actions of longer ones are not kept."""


class Position(NamedTuple):
    """Seeds and actions that lead copies back to where they are, if they are deterministic."""

    seed: int
    episodes: tuple[int, ...]
    """Number of each copy's current episode."""
    actions: tuple[tuple[int, ...] | None, ...]
    """Actions of each copy in its current episode; None if they are more than `MOST_REPLAYED`."""


class History:
    """The actions of every copy's current episode."""

    def __init__(self, copies: int):
        self._actions: list[list[int] | None] = [[] for _ in range(copies)]

    def begin(self, copy: int) -> None:
        """Forget the actions of the episode before."""
        self._actions[copy] = []

    def add(self, copy: int, action: int) -> None:
        """Keep an action, unless there are too many."""
        done = self._actions[copy]
        if done is not None:
            done.append(action)
            if len(done) > MOST_REPLAYED:
                self._actions[copy] = None

    @property
    def actions(self) -> tuple[tuple[int, ...] | None, ...]:
        """What was done, as a `Position` holds it."""
        return tuple(None if done is None else tuple(done) for done in self._actions)

    def restore(self, actions: tuple[tuple[int, ...] | None, ...]) -> None:
        """Continue from the actions of a position."""
        self._actions = [None if done is None else list(done) for done in actions]
