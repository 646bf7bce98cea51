"""Callbacks: notifications of a run while it trains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from umdqn.errors import check
from umdqn.loops.progress import Progress
from umdqn.runs.config import Config


class Report(NamedTuple):
    """A chunk of training steps that is done."""

    step: int
    progress: list[Progress]
    """One per seed."""
    score: float | None
    """Mean return of the last evaluation, over seeds and episodes."""


class Callback:
    """Base class of callbacks: override the methods you need, the others do nothing.

    An exception in a callback stops the run; it can be resumed from its last checkpoint.
    """

    def on_start(self, path: Path, config: Config, step: int) -> None:
        """Called when the run in `path` starts, at a step above 0 if it is resumed."""

    def on_chunk(self, report: Report) -> None:
        """Called after each chunk of steps."""

    def on_evaluation(self, step: int, records: Sequence[dict[str, Any]]) -> None:
        """Called after an evaluation, with the lines of `metrics.jsonl` of all seeds."""

    def on_checkpoint(self, step: int, path: Path) -> None:
        """Called after a checkpoint is written; `load(path, step)` reads it."""

    def on_end(self, status: str) -> None:
        """Called at the end: `finished`, `interrupted` or `failed`."""


class Callbacks(Callback):
    """Forwards every call to several callbacks."""

    def __init__(self, members: Sequence[Callback]):
        for member in members:
            kind = type(member).__name__
            check(isinstance(member, Callback), "callbacks", kind, "objects of umdqn.Callback")
        self._members = tuple(members)

    def on_start(self, path: Path, config: Config, step: int) -> None:
        for member in self._members:
            member.on_start(path, config, step)

    def on_chunk(self, report: Report) -> None:
        for member in self._members:
            member.on_chunk(report)

    def on_evaluation(self, step: int, records: Sequence[dict[str, Any]]) -> None:
        for member in self._members:
            member.on_evaluation(step, records)

    def on_checkpoint(self, step: int, path: Path) -> None:
        for member in self._members:
            member.on_checkpoint(step, path)

    def on_end(self, status: str) -> None:
        for member in self._members:
            member.on_end(status)
