"""Studies that measure every run once, and keep what was measured."""

from __future__ import annotations

import abc
from pathlib import Path
from typing import Any

from umdqn.errors import UmdqnError
from umdqn.runs.fields import to_dict
from umdqn.runs.files import write_json
from umdqn.runs.manifests import config_of
from umdqn.runs.run import Run, load
from umdqn.runs.schemas import Measured, read_unsealed
from umdqn.studies.study import Study, Tell
from umdqn.sweeps.plan import Job
from umdqn.sweeps.work import Place

Result = dict[str, Any]
"""What was measured of a job: `step`, `seeds`, `config`, `seconds` and what the study adds."""


class MeasuredStudy(Study, abc.ABC):
    """A study whose report is made from measurements of its runs."""

    @abc.abstractmethod
    def measure(self, run: Run) -> Result:
        """Return what the study asks of a run; `seeds` holds numbers by seed."""

    def run_path(self, job: Job) -> Path:
        """Return the run directory of a job."""
        return Place(self.sweep).run(job.name)

    def result_path(self, job: Job) -> Path:
        """Return the file that holds what was measured of a job."""
        return self.out / "results" / f"{job.name}.json"

    def result(self, job: Job, tell: Tell) -> Result:
        """Return what was measured of a job, now or before."""
        path = self.result_path(job)
        if path.exists():
            known: Any = read_unsealed(path, Measured)
            if config_of(known["config"], path) == job.config:
                return known
        tell(f"measuring {job.point['case']}")
        run = load(self.run_path(job))
        seconds = run.manifest.get("seconds")
        result = self.measure(run) | {"config": to_dict(job.config), "seconds": seconds}
        try:
            path.parent.mkdir(exist_ok=True)
        except OSError as error:
            raise UmdqnError(f"cannot write {path}: {error.strerror}") from error
        write_json(path, result)
        return result


def merged_seeds(parts: list[Result]) -> dict[str, Any]:
    """Return numbers by seed, of jobs that trained different seeds of one case."""
    seeds = {seed: found for part in parts for seed, found in part["seeds"].items()}
    return dict(sorted(seeds.items(), key=lambda item: int(item[0])))
