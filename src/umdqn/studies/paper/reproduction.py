"""The paper's figures and tables by name, from one sweep of trainings."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from umdqn.analysis.accuracy import FIGURE_STATE, truth
from umdqn.analysis.figures import laws_figure
from umdqn.analysis.pages import Section, Table, claim, write_report
from umdqn.analysis.reports import accuracy_report
from umdqn.analysis.scales import BASELINES, SCALES, UMDQN, jobs_of
from umdqn.analysis.sections import comparison_section, curves_section, picture
from umdqn.envs.grid_world import STATES
from umdqn.runs import RunDirectory, load
from umdqn.runs.fields import to_dict
from umdqn.sweeps import Job, Place, as_planned, collect
from umdqn.types import UmdqnError, unknown

_GRID = "grid-world"
_ACCURACY = ("w1", "cramer", "ks", "mean_error", "std_error", "cvar_error", "optimal_actions")
NAMES = {
    "laws": "learned against exact laws, the three UMDQNs",
    "laws-baselines": "learned against exact laws, CDQN, QR-DQN, IQN and FQF",
    "curves": "learning curves of the three UMDQNs",
    "comparison": "learning curves, ranks and statistics of all algorithms",
}
"""The figures by name."""


class Reproduction:
    """A directory with a sweep and what is drawn from it."""

    def __init__(self, out: Path, scale: str, names: Sequence[str], envs: Sequence[str] = ()):
        if scale not in SCALES:
            raise unknown("scale", scale, SCALES)
        for name in names:
            if name not in NAMES:
                raise unknown("figure", name, NAMES)
        known = [env for part in SCALES[scale] for env in part.envs]
        for env in envs:
            if env not in known:
                raise unknown(f"environment of scale {scale}", env, known)
        self.out, self.scale = out, scale
        # What was made before stays in the report.
        made = [name for name in NAMES if (out / f"{name}.png").exists()]
        self.names = tuple(name for name in NAMES if not names or name in (*names, *made))
        self.envs = tuple(envs) or tuple(known)

    @property
    def sweep(self) -> Path:
        """Where the trainings are."""
        return self.out / "sweep"

    @cached_property
    def jobs(self) -> list[Job]:
        """All trainings that the figures need."""
        needs = {
            "laws": ([_GRID], UMDQN),
            "laws-baselines": ([_GRID], BASELINES[1:]),
            "curves": (self.envs, UMDQN),
            "comparison": (self.envs, (*UMDQN, *BASELINES)),
        }
        found: dict[str, Job] = {}
        for name in self.names:
            found |= {job.name: job for job in jobs_of(self.scale, *needs[name])}
        return list(found.values())

    def claim(self) -> None:
        """Take the directory; one of another scale, or with anything else in it, is left alone."""
        claim(self.out, f"reproduction at scale {self.scale}")

    def write(self) -> list[Path]:
        """Draw everything that there are results for; the reports written."""
        draw: dict[str, Callable[[], Section | None]] = {
            "laws": lambda: self._laws("laws", UMDQN),
            "laws-baselines": lambda: self._laws("laws-baselines", BASELINES[1:]),
            "curves": self._curves,
            "comparison": self._comparison,
        }
        drawn = [draw[name]() for name in self.names]
        sections = [Section("What was run", [*self._account()]), *filter(None, drawn)]
        title = f"Distributional RL with UMNN: the paper's study at scale {self.scale}"
        records = self._records((*UMDQN, *BASELINES))
        return write_report(self.out, title, sections, records, self._details())

    def left(self) -> list[Job]:
        """The trainings that are not done yet."""
        planned = as_planned(self.jobs, self.sweep)
        return [job for job in planned if not Place(self.sweep).finished(job)]

    def _finished(self) -> list[Job]:
        planned = as_planned(self.jobs, self.sweep)
        return [job for job in planned if Place(self.sweep).finished(job)]

    def _account(self) -> list[str | Table]:
        """What was run, in words and numbers."""
        jobs, place = self._finished(), Place(self.sweep)
        manifests = [RunDirectory(place.run(job.name)).read_manifest()[2] for job in jobs]
        if not manifests:
            raise UmdqnError(f"{self.sweep} holds no finished runs")
        seconds = sum(manifest.get("seconds", 0.0) for manifest in manifests)
        sets = [
            ", ".join(f"{name} {v}" for name, v in manifest["versions"].items())
            for manifest in manifests
        ]
        versions = "; others with ".join(dict.fromkeys(sets))
        rows = [_job_row(job, manifest) for job, manifest in zip(jobs, manifests, strict=True)]
        header = ["environment", "agent", "preset", "steps", "seeds", "seconds"]
        return [
            f"{len(jobs)} of {len(self.jobs)} trainings are finished; they took "
            f"{seconds / 3600:.2f} hours, added up. {versions}.",
            Table(header, rows),
        ]

    def _details(self) -> dict[str, str]:
        jobs = self._finished()
        return {job.name: json.dumps(to_dict(job.config), indent=2) for job in jobs}

    def _laws(self, name: str, agents: Sequence[str]) -> Section | None:
        place = Place(self.sweep)
        found = {
            job.config.agent: load(place.run(job.name))
            for job in self._finished()
            if job.config.env == _GRID and job.config.agent in agents
        }
        if not found:
            return None
        run = next(iter(found.values()))
        exact = truth(run.config.discount)[STATES.index(FIGURE_STATE)]
        rows = {
            agent: [run.law(FIGURE_STATE, seed) for seed in run.seeds]
            for agent, run in found.items()
        }
        title = f"Laws of the return at {FIGURE_STATE}, {run.step:,} steps"
        figure = laws_figure(rows, exact, run.agent.spec.action_names, title)
        caption = f"{NAMES[name]}: plain lines learned, dotted lines exact."
        reports = {agent: accuracy_report(run) for agent, run in found.items()}
        cells = [
            [agent, *(f"{report[column]:.4f}" for column in _ACCURACY)]
            for agent, report in reports.items()
        ]
        table = Table(["", *_ACCURACY], cells)
        return Section(name, [picture(self.out, name, figure, caption), table])

    def _records(self, agents: Sequence[str]) -> list[dict[str, Any]]:
        """Results in the order of the agents."""
        records = [record for record in collect(self.sweep) if record["agent"] in agents]
        records = [record for record in records if record["env"] in self.envs]
        return sorted(records, key=lambda record: agents.index(record["agent"]))

    def _curves(self) -> Section | None:
        records = self._records(UMDQN)
        title = "Performance of the UMDQN algorithm"
        return curves_section(records, self.out, "curves", title) if records else None

    def _comparison(self) -> Section | None:
        records = self._records((*UMDQN, *BASELINES))
        return comparison_section(records, self.out, UMDQN, BASELINES) if records else None


def _job_row(job: Job, manifest: dict[str, Any]) -> list[str]:
    config = job.config
    seeds = ", ".join(map(str, config.all_seeds))
    seconds = f"{manifest.get('seconds', 0.0):,.0f}"
    return [config.env, config.agent, config.preset, f"{config.steps:,}", seeds, seconds]
