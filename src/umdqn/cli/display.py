"""Progress displays of training and sweeps."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from umdqn.runs.callbacks import Callback, Report
from umdqn.runs.config import Config
from umdqn.sweeps.driver import State


class TrainingDisplay(Callback):
    """A progress bar with rate, remaining time and latest score; plain lines without a terminal."""

    def __init__(self, config: Config):
        self._config = config
        self._console = Console(stderr=True, highlight=False, markup=False)
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
        self._score: float | None = None
        self._rate: str | None = None

    def __enter__(self) -> TrainingDisplay:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def on_start(self, path: Path, config: Config, step: int) -> None:
        """Print what is trained, and where."""
        self._seen, self._clock = step, time.monotonic()
        seeds = f"{self._config.seeds} seed" + "s" * (self._config.seeds > 1)
        self._console.print(
            f"{self._config.label} on {self._config.env}, preset {self._config.preset}, "
            f"{self._config.steps:,} steps, {seeds} -> {path}",
            soft_wrap=True,
        )
        self._bar.update(self._task, completed=step)

    def on_chunk(self, report: Report) -> None:
        """Advance the bar."""
        self._score = report.score if self._score is None else self._score
        now = time.monotonic()
        # The time of the first chunk includes compilation.
        if self._rate is not None:
            steps = (report.step - self._seen) * self._config.seeds
            self._rate = f"{steps / (now - self._clock):,.0f} steps/s"
        else:
            self._rate = ""
        self._seen, self._clock = report.step, now
        self._show()

    def on_evaluation(self, step: int, records: Sequence[dict[str, Any]]) -> None:
        """Show the score; without a terminal, print a line."""
        self._score = sum(record["return_mean"] for record in records) / len(records)
        self._clock = time.monotonic()
        self._show()
        if not self._console.is_terminal:
            self._console.print(f"step {step:,}  {self._rate}  {self._shown_score}")

    @property
    def _shown_score(self) -> str:
        return "" if self._score is None else f"return {self._score:.3f}"

    def _show(self) -> None:
        self._bar.update(
            self._task, completed=self._seen, rate=self._rate or "", score=self._shown_score
        )


class SweepDisplay:
    """Progress of a sweep: a live table of running jobs; without a terminal, a line per job."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False)
        self._live = Live(console=self._console, auto_refresh=False)
        self._said: set[str] = set()
        self._begun = time.monotonic()
        self._before: float | None = None

    def __enter__(self) -> SweepDisplay:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def show(self, state: State) -> None:
        """Show the state of a sweep."""
        if self._console.is_terminal:
            self._live.update(self._table(state), refresh=True)
            return
        new = [name for name in state.outcomes if name not in self._said]
        if self._before is None:
            self._console.print(f"{len(state.jobs)} runs, {len(new)} done already")
            new, self._said = [], set(new)
        for name in new:
            self._said.add(name)
            outcome = state.outcomes[name]
            why = f": {outcome.reason}" if outcome.reason else ""
            count = f"[{len(state.outcomes)}/{len(state.jobs)}]"
            self._console.print(f"{count} {name} {outcome.status}{why}", soft_wrap=True)
        self._remaining(state)

    def _table(self, state: State) -> Group:
        done = sum(outcome.status == "finished" for outcome in state.outcomes.values())
        failed = len(state.outcomes) - done
        waiting = len(state.jobs) - len(state.outcomes) - len(state.running)
        title = f"{done} finished, {len(state.running)} running, {waiting} waiting, {failed} failed"
        table = Table(box=None)
        for column in ("run", "", "steps", "", "return"):
            table.add_column(column, justify="left" if column == "run" else "right")
        for name, running in state.running.items():
            job = state.jobs[name]
            share = f"{running.step / job.config.steps:.0%}"
            score = "" if running.score is None else f"{running.score:.3f}"
            table.add_row(name, job.varied, f"{running.step:,}", share, score)
        # A table's own title would be wrapped to the width of the table.
        return Group(title + self._remaining(state), *([table] if state.running else []))

    def _remaining(self, state: State) -> str:
        """Return the time left at the rate since the start."""

        def weight(name: str, steps: int) -> float:
            return float(steps * state.jobs[name].config.seeds)

        total = sum(weight(name, job.config.steps) for name, job in state.jobs.items())
        done = sum(weight(name, state.jobs[name].config.steps) for name in state.outcomes)
        done += sum(weight(name, running.step) for name, running in state.running.items())
        if self._before is None:
            self._before = done
        gained = done - self._before
        if gained <= 0:
            return ""
        seconds = (total - done) * (time.monotonic() - self._begun) / gained
        return f", about {seconds / 60:.0f} min left"
