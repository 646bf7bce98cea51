"""The study of laws: its jobs, and the accuracy of every case."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from umdqn.analysis.accuracy import optimal_choices
from umdqn.analysis.reports import EXACT_ENV, accuracy_report
from umdqn.errors import check_count, unknown
from umdqn.runs.config import Config
from umdqn.runs.configure import configure
from umdqn.runs.run import Run, load
from umdqn.studies.laws.cases import SECTIONS, Case
from umdqn.studies.measured import MeasuredStudy, Result, merged_seeds
from umdqn.studies.study import Tell
from umdqn.sweeps.plan import Job


class LawsStudy(MeasuredStudy):
    """How accurate are learned laws? A directory of trained cases and their measured accuracy.

    Sections can be added later, and seeds; finished cases are neither trained nor measured again.
    """

    def __init__(
        self, out: Path, seeds: int = 5, steps: int | None = None, only: Sequence[str] = ()
    ):
        check_count("seeds", seeds)
        check_count("steps", 1 if steps is None else steps)
        for section in only:
            if section not in SECTIONS:
                raise unknown("section", section, SECTIONS)
        self.out, self.seeds, self.steps = out, seeds, steps
        self.only = tuple(section for section in SECTIONS if section in (only or SECTIONS))

    @property
    def kind(self) -> str:
        return "study of laws"

    @property
    def jobs(self) -> list[Job]:
        jobs = [self.job(section, name) for section in self.only for name in SECTIONS[section]]
        return list({job.name: job for job in jobs}.values())

    def config(self, case: Case) -> Config:
        """Return the configuration of a case."""
        steps = case.steps if self.steps is None else self.steps
        fields = {"steps": steps, "seeds": self.seeds} | dict(case.fields)
        return configure(EXACT_ENV, case.agent, case.preset, fields)

    def job(self, section: str, name: str) -> Job:
        """Return the job that trains a case; equal configurations share one job."""
        return self._jobs[section, name]

    @cached_property
    def _jobs(self) -> dict[tuple[str, str], Job]:
        jobs: dict[tuple[str, str], Job] = {}
        first: dict[str, Job] = {}
        for section, cases in SECTIONS.items():
            for name, case in cases.items():
                config = self.config(case)
                point = {"env": config.env, "agent": case.agent, "preset": case.preset}
                job = Job.of({**point, "case": f"{section}-{name}"}, config)
                jobs[section, name] = first.setdefault(job.name, job)
        return jobs

    def finished(self) -> dict[str, dict[str, list[Job]]]:
        """Return the finished jobs of every case, by section and name."""
        every = list({job.name: job for job in self._jobs.values()}.values())
        by_case: dict[str, list[Job]] = {}
        for job in self.found(every):
            by_case.setdefault(job.point["case"], []).append(job)
        return {
            section: {
                name: by_case[case]
                for name in cases
                if (case := self.job(section, name).point["case"]) in by_case
            }
            for section, cases in SECTIONS.items()
        }

    def results(self, tell: Tell = lambda line: None) -> dict[str, dict[str, Result]]:
        """Return the accuracy of every finished case, by section and name."""
        return {
            section: {
                name: _merged([self.result(job, tell) for job in jobs])
                for name, jobs in cases.items()
            }
            for section, cases in self.finished().items()
        }

    def measure(self, run: Run) -> Result:
        return measure(run)

    def write(self, tell: Tell = lambda line: None) -> list[Path]:
        from umdqn.studies.laws.report import write_report

        return write_report(self, tell)


def measure(run: Run) -> Result:
    """Return the accuracy of a run per seed, and the optimal actions at each of its checkpoints."""
    steps = [step for step in run.directory.checkpoints.steps() if step > 0]
    learned = [one for step in steps for one in load(run.path, step).learned.values()]
    counts = optimal_choices(run.agent, learned, run.config.discount)
    width = len(run.seeds)
    history = {str(step): counts[i * width : (i + 1) * width] for i, step in enumerate(steps)}
    seeds = accuracy_report(run)["seeds"]
    return {"step": run.step, "seeds": seeds, "optimal_by_step": history}


def _merged(parts: Sequence[Result]) -> Result:
    """Combine the results of jobs that trained different seeds of one case."""
    histories = [part["optimal_by_step"] for part in parts]
    common = [step for step in histories[0] if all(step in history for history in histories)]
    return parts[0] | {
        "seeds": merged_seeds(list(parts)),
        "optimal_by_step": {step: [n for h in histories for n in h[step]] for step in common},
        "seconds": sum(part["seconds"] or 0.0 for part in parts),
    }
