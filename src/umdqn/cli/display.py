"""The progress display of sweeps."""

from __future__ import annotations

import time

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from umdqn.sweeps.driver import State


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
