"""Progress of a training: in a terminal, in a notebook, or as plain lines."""

from __future__ import annotations

import abc
import datetime
import html
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from umdqn.runs.callbacks import Callback, Report
from umdqn.runs.config import Config
from umdqn.runs.terminal import StatusLine, fitted, is_terminal

# Seconds between two updates of a notebook, each of which is a message to the browser.
_NOTEBOOK_SECONDS = 0.5

# Weight of the latest chunk in the rate.
_LATEST = 0.3


class TrainingDisplay(Callback, abc.ABC):
    """Shows how far a training is, its rate, the time left and the latest score."""

    def __init__(self, config: Config):
        self._config = config
        self.step = 0
        self.score: float | None = None
        self.rate: float | None = None
        """Environment steps a second, of all seeds; None until a chunk without compilation."""
        self._begun = self._clock = time.monotonic()
        self._chunks = 0

    @property
    def label(self) -> str:
        """What is trained."""
        return f"{self._config.label} on {self._config.env}"

    @property
    def announcement(self) -> str:
        """What is trained, how long, and with how many seeds."""
        config = self._config
        seeds = f"{config.seeds} seed" + "s" * (config.seeds > 1)
        return f"{self.label}, preset {config.preset}, {config.steps:,} steps, {seeds}"

    @property
    def share(self) -> float:
        """How much of the training is done, from 0 to 1."""
        return self.step / self._config.steps

    @property
    def pace(self) -> str:
        """The rate, or what happens before there is one."""
        if self.rate is None:
            return f"compiling, {time.monotonic() - self._begun:.0f} s" if not self._chunks else ""
        return f"{self.rate:,.0f} steps/s"

    @property
    def left(self) -> str:
        """The time left at the present rate."""
        if not self.rate:
            return ""
        seconds = (self._config.steps - self.step) * self._config.seeds / self.rate
        return f"{datetime.timedelta(seconds=round(seconds))} left"

    @property
    def shown_score(self) -> str:
        """The mean return of the last evaluation."""
        return "" if self.score is None else f"return {self.score:.3f}"

    def on_start(self, path: Path, config: Config, step: int) -> None:
        self.step, self._clock = step, time.monotonic()
        self.announce(f"{self.announcement} -> {path}")

    def on_chunk(self, report: Report) -> None:
        self.score = report.score if self.score is None else self.score
        now = time.monotonic()
        if self._chunks:
            # The first chunk includes compilation.
            steps = (report.step - self.step) * self._config.seeds
            latest = steps / max(now - self._clock, 1e-9)
            self.rate = latest if self.rate is None else self.rate + _LATEST * (latest - self.rate)
        self._chunks += 1
        self.step, self._clock = report.step, now
        self.advanced()

    def on_evaluation(self, step: int, records: Sequence[dict[str, Any]]) -> None:
        self.score = sum(record["return_mean"] for record in records) / len(records)
        self._clock = time.monotonic()
        self.evaluated()

    def on_end(self, status: str) -> None:
        if status == "stopped":
            self.announce(f"stopped by a callback at step {self.step:,}; the run can be resumed")

    def __enter__(self) -> TrainingDisplay:
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the screen as it was."""

    @abc.abstractmethod
    def announce(self, text: str) -> None:
        """Show a message that stays."""

    @abc.abstractmethod
    def advanced(self) -> None:
        """Show that steps were done."""

    @abc.abstractmethod
    def evaluated(self) -> None:
        """Show a new score."""


class TerminalDisplay(TrainingDisplay):
    """A status line that fits itself to the width of the terminal."""

    def __init__(self, config: Config):
        super().__init__(config)
        self._line = StatusLine(self.text)

    def text(self, width: int, glyphs: str) -> str:
        """Return the line for a width."""
        parts = [
            (4, self.label),
            (0, f"{self.share:.0%}"),
            (5, f"{self.step:,}/{self._config.steps:,}"),
            (2, self.pace),
            (3, self.left),
            (1, self.shown_score),
        ]
        return fitted(width, parts, self.share, glyphs)

    def __enter__(self) -> TerminalDisplay:
        self._line.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._line.stop()

    def announce(self, text: str) -> None:
        print(text, file=sys.stderr)

    def advanced(self) -> None:
        self._line.draw()

    evaluated = advanced


class LinesDisplay(TrainingDisplay):
    """A line for each evaluation: for files and pipes."""

    def announce(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def advanced(self) -> None:
        """Print nothing: a log should stay short."""

    def evaluated(self) -> None:
        parts = (f"step {self.step:,}", self.pace, self.shown_score)
        print("  ".join(filter(None, parts)), file=sys.stderr, flush=True)


class NotebookDisplay(TrainingDisplay):
    """A progress bar below the cell of a notebook, updated in place."""

    def __init__(self, config: Config):
        super().__init__(config)
        self._said: list[str] = []
        self._shown_at = 0.0
        self._handle: Any = None

    def _repr_html_(self) -> str:
        facts = filter(None, (self._numbers(), self.pace, self.left, self.shown_score))
        said = "".join(f"<div>{html.escape(line)}</div>" for line in self._said)
        return (
            f"{said}<div><progress max='1' value='{self.share:.4f}'></progress> "
            f"{html.escape(' · '.join(facts))}</div>"
        )

    def __repr__(self) -> str:
        return "\n".join([*self._said, f"{self._numbers()}  {self.shown_score}".rstrip()])

    def _numbers(self) -> str:
        return f"{self.step:,} of {self._config.steps:,} steps"

    def announce(self, text: str) -> None:
        self._said.append(text)
        self.evaluated()

    def advanced(self) -> None:
        if time.monotonic() - self._shown_at > _NOTEBOOK_SECONDS or self.share >= 1:
            self.evaluated()

    def evaluated(self) -> None:
        from IPython.display import display

        self._shown_at = time.monotonic()
        if self._handle is None:
            self._handle = display(self, display_id=True)
        else:
            self._handle.update(self)


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


def display_of(config: Config, progress: bool | None) -> TrainingDisplay | None:
    """Return the display for where this process runs; None for none.

    Without a terminal or a notebook there is one only if `progress` is True, and none anywhere if
    it is False.
    """
    if progress is False:
        return None
    if in_notebook():
        return NotebookDisplay(config)
    if is_terminal(sys.stderr):
        return TerminalDisplay(config)
    return LinesDisplay(config) if progress else None
