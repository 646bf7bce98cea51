"""What a study is: the jobs of a sweep, and a report made from the finished runs."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from umdqn.errors import UmdqnError
from umdqn.studies.cost import hours
from umdqn.studies.pages import claim
from umdqn.sweeps.driver import Show, as_planned, read_plan, run_sweep
from umdqn.sweeps.plan import Job, without_seeds
from umdqn.sweeps.pools import MakePool
from umdqn.sweeps.work import Outcome, Place, failure

Tell = Callable[[str], None]
"""Takes a line of progress."""


class Study(abc.ABC):
    """A directory with a sweep and a report; the same study can be resumed and extended there."""

    out: Path

    @property
    @abc.abstractmethod
    def kind(self) -> str:
        """What the directory holds; a directory of another kind is refused."""

    @property
    @abc.abstractmethod
    def jobs(self) -> list[Job]:
        """All trainings that were asked for."""

    @abc.abstractmethod
    def write(self, tell: Tell = lambda line: None) -> list[Path]:
        """Write the report from the finished runs; return the files written."""

    @property
    def sweep(self) -> Path:
        """The directory of the sweep."""
        return self.out / "sweep"

    def claim(self) -> None:
        """Create the directory; raise if it holds anything else."""
        claim(self.out, self.kind)

    def left(self) -> list[Job]:
        """Return the trainings that are not finished."""
        place = Place(self.sweep)
        return [job for job in as_planned(self.jobs, self.sweep) if not place.finished(job)]

    def found(self, jobs: Sequence[Job]) -> list[Job]:
        """Return the finished jobs of the sweep at the points of `jobs`, with the same settings.

        They may have other seeds: a sweep that was extended trains new seeds in jobs of their own.
        """
        wanted = [(job.point, without_seeds(job.config)) for job in jobs]
        place = Place(self.sweep)
        return [
            job
            for job in read_plan(self.sweep)
            if (job.point, without_seeds(job.config)) in wanted and place.finished(job)
        ]


class Ended(NamedTuple):
    """A study that has ended."""

    outcomes: dict[str, Outcome]
    """Of every job, by its name."""
    written: list[Path]
    """The files of the report."""


def outlook(study: Study, cores: int) -> str:
    """Claim the study's directory and describe in one line how much is left to train."""
    study.claim()
    left = study.left()
    return (
        f"{len(left)} of {len(study.jobs)} trainings are left, about {_span(hours(left, cores))} "
        f"on {cores} core{'s' * (cores > 1)}, evaluations not counted"
    )


def _span(hours: float) -> str:
    return f"{hours:.1f} hours" if hours >= 1 else f"{max(hours * 60, 1):.0f} min"


def run_study(
    study: Study,
    make_pool: MakePool,
    show: Show = lambda state: None,
    tell: Tell = lambda line: None,
) -> Ended:
    """Train the jobs that are left and write the report; failed jobs do not stop the others.

    If no report can be written because jobs have failed, the error lists them.
    """
    study.claim()
    outcomes = run_sweep(study.jobs, study.sweep, make_pool, show)
    try:
        return Ended(outcomes, study.write(tell))
    except UmdqnError as error:
        raise failure(outcomes) or error from None
