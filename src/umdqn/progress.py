"""What a person sees while an agent trains."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from umdqn.runs import Config, Report


class TrainingDisplay:
    """A progress bar with rate, remaining time and latest score; plain lines without a terminal."""

    def __init__(self, config: Config):
        self._config = config
        self._console = Console(stderr=True, highlight=False)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[score]}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task(
            f"{config.label} on {config.env}", total=config.steps, rate="compiling", score=""
        )
        self._seen, self._clock = 0, time.monotonic()

    def __enter__(self) -> TrainingDisplay:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def started(self, path: Path) -> None:
        """Say where the run lives."""
        seeds = f"{self._config.seeds} seed" + "s" * (self._config.seeds > 1)
        self._console.print(
            f"{self._config.label} on {self._config.env}, preset {self._config.preset}, "
            f"{self._config.steps:,} steps, {seeds} -> {path}",
            soft_wrap=True,
        )
        if self._config.steps <= self._config.replay.warmup:
            self._console.print(
                f"note: {self._config.replay.warmup:,} random steps (replay.warmup) come before "
                f"the first update, so that {self._config.steps:,} steps learn nothing",
                soft_wrap=True,
            )

    def update(self, report: Report) -> None:
        """Show a report."""
        score = "" if report.score is None else f"return {report.score:.3f}"
        rate = self._rate(report)
        self._bar.update(self._task, completed=report.step, rate=rate, score=score)
        evaluated = not report.progress
        if evaluated and not self._console.is_terminal:
            self._console.print(f"step {report.step:,}  {rate}  {score}")

    def _rate(self, report: Report) -> str:
        """Steps a second over all seeds, since the last chunk."""
        now = time.monotonic()
        if report.step > self._seen:
            first = self._seen == 0
            steps = (report.step - self._seen) * self._config.seeds
            self._last_rate = "" if first else f"{steps / (now - self._clock):,.0f} steps/s"
        self._seen, self._clock = report.step, now
        return self._last_rate
