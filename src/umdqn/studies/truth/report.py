"""The report of the study of truth: tables, JSON and a figure."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import numpy as np

from umdqn.analysis.statistics import estimate, mean
from umdqn.errors import UmdqnError
from umdqn.runs.files import write_bytes, write_json
from umdqn.studies.measured import Result
from umdqn.studies.pages import Table
from umdqn.studies.study import Tell
from umdqn.studies.truth.study import AGENTS, TruthStudy

_TITLES = {
    "evaluation": "Laws of a given policy",
    "control": "Laws of the policy that is learned, against the exact laws of that policy",
}
_COLUMNS = {
    "w1": "W1",
    "normalised_w1": "W1 / std",
    "normalised_w1_tried": "of pairs tried",
    "floor": "floor",
    "mean_error": "error of the mean",
    "std_error": "error of the std",
    "coverage_90": "90% intervals cover",
    "crps_skill": "CRPS skill",
}
_READING = (
    "W1 / std is the mean over state-action pairs of the Wasserstein distance to the exact law, "
    "divided by the mean standard deviation of the exact laws: mean over seeds with its 95% "
    "bootstrap interval. The floor is that of the exact laws of the MDP that the same transitions "
    "suggest. It is over the pairs that were tried, and so are the distances beside it."
)


def write_report(study: TruthStudy, tell: Tell) -> list[Path]:
    """Write the report on all finished cases; return the files written."""
    from umdqn.figures.style import save_figure
    from umdqn.figures.truth import truth_figure

    results = {section: envs for section, envs in study.results(tell).items() if envs}
    if not results:
        raise UmdqnError(f"{study.out}: no training has finished")
    written = [study.out / "results.json", study.out / "report.md"]
    machine = {"system": platform.platform(), "cores": os.cpu_count()}
    write_json(written[0], {"machine": machine, "sections": results})
    write_bytes(written[1], _markdown(results).encode())
    for section, envs in results.items():
        written.append(study.out / f"{section}.png")
        save_figure(truth_figure(envs, AGENTS, _TITLES[section]), written[-1])
    return written


def values(result: Result, column: str) -> np.ndarray:
    """Return one column of a result by seed, where it exists."""
    found = [seed.get(column) for seed in result["seeds"].values()]
    return np.array([number for number in found if number is not None])


def _markdown(results: dict[str, dict[str, dict[str, Result]]]) -> str:
    parts = ["# How true are the laws?", _READING]
    for section, envs in results.items():
        parts += [f"## {_TITLES[section]}", f"![W1 / std]({section}.png)", _overview(envs)]
        for env, agents in envs.items():
            parts += [f"### {env}", _details(agents)]
    return "\n\n".join(parts) + "\n"


def _overview(envs: dict[str, dict[str, Result]]) -> str:
    """Return the normalised distance over pairs that were tried, of all agents, by environment."""
    rows = [
        [agent, *(_interval(envs[env].get(agent)) for env in envs)]
        for agent in AGENTS
        if any(agent in found for found in envs.values())
    ]
    return Table(["W1 / std", *envs], rows).markdown()


def _interval(result: Result | None) -> str:
    from umdqn.figures.truth import compared

    numbers = np.array(compared(result))
    if not numbers.size:
        return "-"
    if len(numbers) > 1:
        found = estimate(numbers[:, None], mean)
        shown = f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"
    else:
        shown = f"{numbers[0]:.3f} (one seed)"
    floors = values(result, "floor") if result is not None else numbers[:0]
    floor = f", floor {floors.mean():.3f}" if floors.size else ""
    return shown + floor


def _details(agents: dict[str, Result]) -> str:
    def cell(result: Result, column: str) -> str:
        numbers = values(result, column)
        return f"{numbers.mean():.4g}" if numbers.size else "-"

    def row(agent: str, result: Result) -> list[str]:
        counts: list[dict[str, Any]] = list(result["seeds"].values())
        optimal = np.mean([seed["optimal_actions"] for seed in counts])
        cells = [cell(result, column) for column in _COLUMNS]
        states, steps = counts[0]["states"], f"{result['step']:,}"
        return [agent, *cells, f"{optimal:.1f} of {states}", str(len(counts)), steps]

    header = ["", *_COLUMNS.values(), "optimal actions", "seeds", "steps"]
    return Table(header, [row(agent, result) for agent, result in agents.items()]).markdown()
