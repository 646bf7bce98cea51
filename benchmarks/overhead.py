"""What checkpoints and metrics cost at default settings, as a share of training time."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from umdqn.runs.callbacks import Callback
from umdqn.runs.configure import configure
from umdqn.runs.records import Records
from umdqn.runs.start import train_config
from umdqn.runs.trainer import Trainer

CASES = (
    ("grid-world", "umdqn-c", 40_000),
    ("grid-world", "dqn", 40_000),
    ("MinAtar/Breakout", "umdqn-c", 40_000),
    ("ALE/Pong", "umdqn-c", 20_000),
)
MOST = 0.03
"""What is promised."""


class _Clock(Callback):
    """The time of training alone: from the end of the first chunk, which compiles, to the end."""

    def __init__(self) -> None:
        self.first: float | None = None
        self.last = 0.0

    def on_chunk(self, report: Any) -> None:
        self.first = self.first or time.perf_counter()

    def on_end(self, status: str) -> None:
        self.last = time.perf_counter()


def overhead(env: str, agent: str, steps: int) -> float:
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
        mock.patch.object(Records, "append", timed(Records.append)),
    ):
        config = configure(env, agent, "paper", {"steps": steps, "replay.warmup": 1_000})
        train_config(config, Path(folder) / "run", [clock])
    assert clock.first is not None
    return spent / (clock.last - clock.first)


def overheads() -> dict[str, float]:
    """Shares by environment and agent: the slower the steps, the smaller; pictures are large."""
    return {f"{env} {agent}": overhead(env, agent, steps) for env, agent, steps in CASES}


if __name__ == "__main__":
    shares = overheads()
    for name, share in shares.items():
        print(f"{name}: checkpoints and metrics take {share:.2%}")
    sys.exit(max(shares.values()) > MOST)
