"""Callbacks: notifications of a run while it trains."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from umdqn.errors import check
from umdqn.loops.progress import Progress
from umdqn.runs.config import Config


class StopTraining(Exception):
    """Raised in a callback to end training early: the run is saved, returned, and resumable."""


class Report(NamedTuple):
    """A chunk of training steps that is done."""

    step: int
    progress: list[Progress]
    """One per seed."""
    score: float | None
    """Mean return of the last evaluation, over seeds and episodes."""


class Callback:
    """Base class of callbacks: override the methods you need, the others do nothing.

    A method that returns False, or raises `StopTraining`, stops the run once all callbacks have
    been told. Any other exception makes the run fail; it can be resumed from its last checkpoint.
    """

    def on_start(self, path: Path, config: Config, step: int) -> bool | None:
        """Called when the run in `path` starts, at a step above 0 if it is resumed."""

    def on_chunk(self, report: Report) -> bool | None:
        """Called after each chunk of steps."""

    def on_evaluation(self, step: int, records: Sequence[dict[str, Any]]) -> bool | None:
        """Called after an evaluation, with the lines of `metrics.jsonl` of all seeds."""

    def on_checkpoint(self, step: int, path: Path) -> bool | None:
        """Called after a checkpoint is written; `load(path, step)` reads it."""

    def on_end(self, status: str) -> None:
        """Called at the end: `finished`, `stopped`, `interrupted` or `failed`."""


class Callbacks(Callback):
    """Forwards every call to several callbacks; False once one of them asks to stop."""

    def __init__(self, members: Iterable[Callback]):
        self._members = tuple(members)

    @classmethod
    def of(cls, given: Any, *more: Callback) -> Callbacks:
        """Return the callbacks that a user gives, one or several, after some of our own."""
        members = [given] if isinstance(given, Callback) else given
        listed = isinstance(members, Sequence) and not isinstance(members, str)
        check(listed, "callbacks", given, "a umdqn.Callback, or a list of them")
        for member in members:
            kind = member.__name__ if isinstance(member, type) else type(member).__name__
            check(isinstance(member, Callback), "callbacks", kind, "objects of umdqn.Callback")
        return cls([*more, *members])

    def on_start(self, path: Path, config: Config, step: int) -> bool:
        return self._tell("on_start", path, config, step)

    def on_chunk(self, report: Report) -> bool:
        return self._tell("on_chunk", report)

    def on_evaluation(self, step: int, records: Sequence[dict[str, Any]]) -> bool:
        return self._tell("on_evaluation", step, records)

    def on_checkpoint(self, step: int, path: Path) -> bool:
        return self._tell("on_checkpoint", step, path)

    def on_end(self, status: str) -> None:
        for member in self._members:
            member.on_end(status)

    def _tell(self, event: str, *details: Any) -> bool:
        """Tell all members, and return whether none of them asks to stop."""
        go_on = True
        for member in self._members:
            try:
                answer = getattr(member, event)(*details)
            except StopTraining:
                answer = False
            # Only False stops: None and numbers do not, not even 0.
            go_on &= not (isinstance(answer, bool | np.bool_) and not answer)
        return go_on
