"""The study of how true learned laws are: what is trained, and doing it once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from umdqn.agents import ALGORITHMS
from umdqn.analysis.accuracy import optimal_choices
from umdqn.analysis.pages import claim
from umdqn.analysis.reports import accuracy_report
from umdqn.runs import Callback, Config, Run, configure, load, train_once
from umdqn.runs.fields import from_dict, to_dict
from umdqn.runs.files import read_json, write_json
from umdqn.types import UmdqnError, unknown

KAPPAS = (1.0, 0.1, 0.02, 0.0)
UMDQN = ("umdqn-kl", "umdqn-c", "umdqn-w")
REPRESENTATIONS = {"umnn-pdf": "umdqn-kl", "umnn-cdf": "umdqn-c", "umnn-qf": "umdqn-w"}
METRICS: dict[str, dict[str, Any]] = {
    "kl": {},
    "cramer": {"metric.root": False},
    "wasserstein": {"metric.kappa": 0.02},
}
LATE = ("umdqn-w", "dqn", "qr-dqn", "nc-qr-dqn")
DOMAINS = {"narrow": (-0.75, 0.75), "right": (-2.0, 2.0), "wide": (-20.0, 20.0)}


class Case(NamedTuple):
    """One training of the study."""

    agent: str
    preset: str
    steps: int
    fields: Mapping[str, Any]


# The longest trainings show how true laws can get; comparisons settle long before.
_LONG_STEPS = 300_000
_PAPER_STEPS = 60_000
_COMPARED_STEPS = 20_000
# Those whose choices are not settled after that get more, watched closely: with a constant learning
# rate choices between close actions come and go.
_LATE_STEPS = 100_000
_LATE_FIELDS = {"checkpoint_every": 10_000}


def _compared(agent: str, **fields: Any) -> Case:
    return Case(agent, "tuned", _COMPARED_STEPS, fields)


def _cases() -> dict[str, dict[str, Case]]:
    algorithms = {name: Case(name, "paper", _PAPER_STEPS, {}) for name in ALGORITHMS}
    kappa = {
        f"{agent}-kappa-{value:g}": _compared(agent, **{"metric.kappa": value})
        for agent in ("umdqn-w", "qr-dqn", "iqn", "fqf")
        for value in KAPPAS
    }
    matrix = {
        f"{representation}-{metric}": _compared(
            agent,
            representation=representation,
            metric=metric,
            **fields,
            **{"representation.point_scale": 60.0},
        )
        for representation, agent in REPRESENTATIONS.items()
        for metric, fields in METRICS.items()
    }
    direction = {
        f"umdqn-kl-{name}": _compared("umdqn-kl", **{"metric.direction": name})
        for name in ("forward", "reverse", "reverse-raw")
    }
    domain = {
        f"{agent}-{name}": _compared(agent, domain=bounds)
        for agent in ("umdqn-kl", "umdqn-c")
        for name, bounds in DOMAINS.items()
    }
    return {
        "tuned": {agent: Case(agent, "tuned", _LONG_STEPS, {}) for agent in UMDQN},
        "algorithms": algorithms,
        "longer": {name: Case(name, "paper", _LATE_STEPS, _LATE_FIELDS) for name in LATE},
        "matrix": matrix,
        "direction": direction,
        "domain": domain,
        "kappa": kappa,
    }


SECTIONS: dict[str, dict[str, Case]] = _cases()
"""Cases by the question that they answer. What two questions share is trained once."""


class LawsStudy:
    """A directory of trained cases and what was measured of them.

    Whatever is there and belongs to the same configuration is not done again; a training that was
    cut off goes on.
    """

    def __init__(self, out: Path, seeds: int = 5, steps: int | None = None):
        self.out, self.seeds, self.steps = out, seeds, steps
        self._by_config: dict[str, str] = {}
        for section, cases in SECTIONS.items():
            for name, case in cases.items():
                self._by_config.setdefault(repr(self.config(case)), f"{section}-{name}")

    def make(self) -> None:
        """Make the directory, if it is not there; one with anything else in it is left alone."""
        claim(self.out, "study of laws")
        try:
            (self.out / "results").mkdir(exist_ok=True)
        except OSError as error:
            raise UmdqnError(f"--out {self.out}: cannot make it: {error.strerror}") from error

    def config(self, case: Case) -> Config:
        """The configuration of a case."""
        steps = case.steps if self.steps is None else self.steps
        fields = {"steps": steps, "seeds": self.seeds} | dict(case.fields)
        return configure("grid-world", case.agent, case.preset, fields)

    def key(self, section: str, name: str) -> str:
        """The name under which a case is kept: that of the first case that is the same."""
        return self._by_config[repr(self.config(SECTIONS[section][name]))]

    def todo(self, sections: Sequence[str]) -> dict[str, Config]:
        """What has to be trained or measured for some sections."""
        for section in sections:
            if section not in SECTIONS:
                raise unknown("section", section, SECTIONS)
        cases = {
            self.key(section, name): self.config(case)
            for section in SECTIONS
            for name, case in SECTIONS[section].items()
            if section in sections
        }
        return {key: config for key, config in cases.items() if self.result(key, config) is None}

    def result(self, key: str, config: Config) -> dict[str, Any] | None:
        """What was measured of a case, if it was and nothing about the case has changed."""
        path = self._result_path(key)
        result = read_json(path) if path.exists() else None
        same = result is not None and from_dict(Config, result["config"]) == config
        return result if same else None

    def results(self, section: str) -> dict[str, dict[str, Any]]:
        """What was measured of the cases of a section so far, by their names in it."""
        found = {
            name: self.result(self.key(section, name), self.config(case))
            for name, case in SECTIONS[section].items()
        }
        return {name: result for name, result in found.items() if result is not None}

    def do(self, key: str, config: Config, callbacks: Sequence[Callback] = ()) -> dict[str, Any]:
        """Train a case, unless it is trained already, and measure it."""
        self.make()
        run = train_once(config, self.run_path(key), callbacks)
        seconds = run.manifest.get("seconds")
        result = measure(run) | {"config": to_dict(config), "seconds": seconds}
        write_json(self._result_path(key), result)
        return result

    def run_path(self, key: str) -> Path:
        """The run directory of a case."""
        return self.out / "runs" / key

    def _result_path(self, key: str) -> Path:
        return self.out / "results" / f"{key}.json"


def measure(run: Run) -> dict[str, Any]:
    """Accuracy of a run at its last checkpoint, by seed; and the optimal actions at all of them."""
    steps = [step for step in run.directory.checkpoints.steps() if step > 0]
    learned = [params for step in steps for params in load(run.path, step).params.values()]
    counts = optimal_choices(run.agent, learned, run.config.discount)
    width = len(run.seeds)
    history = {str(step): counts[i * width : (i + 1) * width] for i, step in enumerate(steps)}
    seeds = accuracy_report(run)["seeds"]
    return {"step": run.step, "seeds": seeds, "optimal_by_step": history}
