"""What checkpoints and metrics cost at default settings, as a share of training time."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from umdqn.runs import Callback, configure, train_config
from umdqn.runs.directory import RunDirectory
from umdqn.runs.trainer import Trainer

STEPS = 40_000


class _Clock(Callback):
    """The time of training alone: from the end of the first chunk, which compiles, to the end."""

    def __init__(self) -> None:
        self.first: float | None = None
        self.last = 0.0

    def on_chunk(self, report: Any) -> None:
        self.first = self.first or time.perf_counter()

    def on_end(self, status: str) -> None:
        self.last = time.perf_counter()


def overhead(env: str = "grid-world", agent: str = "umdqn-c", steps: int = STEPS) -> float:
    """Share of the time of a run that goes into files."""
    spent = 0.0

    def timed(method: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **more: Any) -> Any:
            nonlocal spent
            start = time.perf_counter()
            try:
                return method(*arguments, **more)
            finally:
                spent += time.perf_counter() - start

        return run

    clock = _Clock()
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(Trainer, "save", timed(Trainer.save)),
        mock.patch.object(RunDirectory, "append_metrics", timed(RunDirectory.append_metrics)),
    ):
        config = configure(env, agent, "paper", {"steps": steps, "replay.warmup": 1_000})
        train_config(config, Path(folder) / "run", [clock])
    assert clock.first is not None
    return spent / (clock.last - clock.first)


def overheads() -> dict[str, float]:
    """Shares by agent: the slower its steps, the smaller."""
    return {agent: overhead(agent=agent) for agent in ("umdqn-c", "dqn")}


if __name__ == "__main__":
    for name, share in overheads().items():
        print(f"{name}: checkpoints and metrics take {share:.2%} of {STEPS:,} steps")
