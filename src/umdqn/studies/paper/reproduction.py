"""The paper's figures and tables by name, from one sweep."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from umdqn.analysis.reports import EXACT_ENV, accuracy_report
from umdqn.errors import UmdqnError, unknown
from umdqn.runs.directory import RunDirectory
from umdqn.runs.fields import to_dict
from umdqn.runs.run import Run, load
from umdqn.studies.pages import Section, Table, write_report
from umdqn.studies.paper.scales import BASELINES, SCALES, UMDQN, jobs_of
from umdqn.studies.sections import comparison_sections, curves_section, picture
from umdqn.studies.study import Study, Tell
from umdqn.sweeps.plan import Job
from umdqn.sweeps.results import collect
from umdqn.sweeps.work import Place

_ACCURACY = ("w1", "cramer", "ks", "mean_error", "std_error", "cvar_error", "optimal_actions")
NAMES = {
    "laws": "learned against exact laws, the three UMDQNs",
    "laws-baselines": "learned against exact laws, CDQN, QR-DQN, IQN and FQF",
    "curves": "learning curves of the three UMDQNs",
    "comparison": "learning curves, ranks and statistics of all algorithms",
}
"""The figures by name."""


_TITLES = {
    "laws": "Laws of the UMDQN algorithms",
    "laws-baselines": "Laws of the baselines",
}


class Reproduction(Study):
    """The paper's figures and tables at a scale."""

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
        # Figures that were made before stay in the report.
        made = [name for name in NAMES if (out / f"{name}.png").exists()]
        self.names = tuple(name for name in NAMES if not names or name in (*names, *made))
        self.envs = tuple(envs) or tuple(known)

    @property
    def kind(self) -> str:
        return f"reproduction at scale {self.scale}"

    @property
    def jobs(self) -> list[Job]:
        return self._jobs

    @cached_property
    def _jobs(self) -> list[Job]:
        """The trainings that the figures need."""
        needs = {
            "laws": ([EXACT_ENV], UMDQN),
            "laws-baselines": ([EXACT_ENV], BASELINES[1:]),
            "curves": (self.envs, UMDQN),
            "comparison": (self.envs, (*UMDQN, *BASELINES)),
        }
        found: dict[str, Job] = {}
        for name in self.names:
            found |= {job.name: job for job in jobs_of(self.scale, *needs[name])}
        return list(found.values())

    def write(self, tell: Tell = lambda line: None) -> list[Path]:
        draw: dict[str, Callable[[], list[Section]]] = {
            "laws": lambda: self._laws("laws", UMDQN),
            "laws-baselines": lambda: self._laws("laws-baselines", BASELINES[1:]),
            "curves": self._curves,
            "comparison": self._comparison,
        }
        account = Section("What was run", self._account())
        sections = [account]
        for name in self.names:
            tell(f"drawing {name}")
            sections += draw[name]()
        title = f"Distributional RL with UMNN: the paper's study at scale {self.scale}"
        records = self._records((*UMDQN, *BASELINES))
        return write_report(self.out, title, sections, records, self._details())

    def _account(self) -> list[str | Table]:
        """Return how many trainings are finished, and a table of them."""
        jobs, place = self.found(self.jobs), Place(self.sweep)
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
            f"{len(jobs)} of {len(jobs) + len(self.left())} trainings are finished; they took "
            f"{seconds / 3600:.2f} hours in total. {versions}.",
            Table(header, rows),
        ]

    def _details(self) -> dict[str, str]:
        jobs = self.found(self.jobs)
        return {job.name: json.dumps(to_dict(job.config), indent=2) for job in jobs}

    def _laws(self, name: str, agents: Sequence[str]) -> list[Section]:
        place = Place(self.sweep)
        runs: dict[str, list[Run]] = {}
        for job in self.found(self.jobs):
            if job.config.env == EXACT_ENV and job.config.agent in agents:
                runs.setdefault(job.config.agent, []).append(load(place.run(job.name)))
        if not runs:
            return []
        from umdqn.figures.laws import figure_state_laws

        step = next(iter(runs.values()))[0].step
        figure = figure_state_laws(runs, f"{step:,} steps")
        caption = f"{NAMES[name]}: plain lines learned, dotted lines exact."
        cells = [[agent, *_accuracy(of_agent)] for agent, of_agent in runs.items()]
        table = Table(["", *_ACCURACY], cells)
        return [Section(_TITLES[name], [picture(self.out, name, figure, caption), table])]

    def _records(self, agents: Sequence[str]) -> list[dict[str, Any]]:
        """Return the records of some agents, in the order of the agents."""
        records = [record for record in collect(self.sweep) if record["agent"] in agents]
        records = [record for record in records if record["env"] in self.envs]
        return sorted(records, key=lambda record: agents.index(record["agent"]))

    def _curves(self) -> list[Section]:
        records = self._records(UMDQN)
        title = "Learning curves of the UMDQN algorithms"
        return [curves_section(records, self.out, "curves", title)] if records else []

    def _comparison(self) -> list[Section]:
        records = self._records((*UMDQN, *BASELINES))
        return comparison_sections(records, self.out, UMDQN, BASELINES) if records else []


def _job_row(job: Job, manifest: dict[str, Any]) -> list[str]:
    config = job.config
    seeds = ", ".join(map(str, config.all_seeds))
    seconds = f"{manifest.get('seconds', 0.0):,.0f}"
    return [config.env, config.agent, config.preset, f"{config.steps:,}", seeds, seconds]


def _accuracy(runs: Sequence[Run]) -> list[str]:
    """Return the accuracy of an agent: means over all seeds of its runs."""
    reports = [accuracy_report(run)["seeds"] for run in runs]
    seeds = [seed for report in reports for seed in report.values()]
    return [f"{np.mean([seed[column] for seed in seeds]):.4f}" for column in _ACCURACY]
