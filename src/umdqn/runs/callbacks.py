"""What others may hear of a run while it trains."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from umdqn.loops import Progress
from umdqn.runs.config import Config
from umdqn.types import check


class Report(NamedTuple):
    """What happened in a chunk."""

    step: int
    progress: list[Progress]
    """One a seed."""
    score: float | None
    """Mean return of the last evaluation, over seeds and episodes."""


class Callback:
    """Hears of a run. All methods do nothing; whoever is interested overrides some.

    What a callback raises stops the run, whose last checkpoint stays.
    """

    def on_start(self, path: Path, config: Config, step: int) -> None:
        """The run in `path` starts at a step, which is not 0 if it is resumed."""

    def on_chunk(self, report: Report) -> None:
        """A chunk of steps is done."""

    def on_evaluation(self, step: int, records: Sequence[dict[str, Any]]) -> None:
        """All seeds were evaluated: their lines of `metrics.jsonl`."""

    def on_checkpoint(self, step: int, path: Path) -> None:
        """A checkpoint was written; `load(path, step)` reads it."""

    def on_end(self, status: str) -> None:
        """The run ended: `finished`, `interrupted` or `failed`."""


class Callbacks(Callback):
    """Several callbacks as one."""

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
