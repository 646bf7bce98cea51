"""The report of the study of laws: tables, JSON and figures, from what has been measured."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from umdqn.analysis.accuracy import FIGURE_STATE, truth
from umdqn.analysis.figures import COLOURS, laws_figure, save_figure
from umdqn.analysis.laws_study import (
    DOMAINS,
    KAPPAS,
    METRICS,
    REPRESENTATIONS,
    SECTIONS,
    UMDQN,
    LawsStudy,
)
from umdqn.analysis.pages import Table
from umdqn.envs.grid_world import STATES
from umdqn.runs import load
from umdqn.runs.files import write_bytes, write_json

_COLUMNS = {
    "w1": "W1",
    "cramer": "Cramer",
    "ks": "KS",
    "mean_error": "mean",
    "std_error": "std",
    "cvar_error": "CVaR 10%",
    "w1_figure": "W1 at (2, 6) RIGHT",
    "crossing_rate": "crossing",
    "optimal_actions": "optimal of 47",
}
_FIGURES = {
    "laws-umdqn": ("algorithms", UMDQN),
    "laws-baselines": ("algorithms", ("cdqn", "qr-dqn", "iqn", "fqf")),
    "laws-tuned": ("tuned", UMDQN),
}


def write_report(study: LawsStudy) -> list[Path]:
    """Write all that can be said so far; the files written."""
    study.make()
    results = {section: study.results(section) for section in SECTIONS}
    written = [study.out / "results.json", study.out / "report.md"]
    write_json(written[0], {"machine": _machine(), "sections": results})
    write_bytes(written[1], _markdown(results, study).encode())
    for name, (section, agents) in _FIGURES.items():
        done = [
            agent
            for agent in agents
            if agent in results[section] and study.run_path(study.key(section, agent)).exists()
        ]
        if done:
            written.append(study.out / f"{name}.png")
            save_figure(_laws(study, section, done), written[-1])
    if results["kappa"]:
        written.append(study.out / "kappa.png")
        save_figure(_kappa_figure(results["kappa"]), written[-1])
    return written


def _machine() -> dict[str, Any]:
    return {"system": platform.platform(), "cores": os.cpu_count()}


def values(result: dict[str, Any], column: str) -> np.ndarray:
    """A number of a case, by seed."""
    return np.array([seed[column] for seed in result["seeds"].values()])


def _cell(result: dict[str, Any] | None, column: str) -> str:
    """Mean over seeds, and their range."""
    if result is None:
        return "-"
    numbers = values(result, column)
    digits = 1 if column == "optimal_actions" else 4
    low, high = numbers.min(), numbers.max()
    spread = f"{low:.{digits}f} to {high:.{digits}f}"
    return (
        f"{numbers.mean():.{digits}f} ({spread})" if high > low else f"{numbers.mean():.{digits}f}"
    )


def _full_table(section: dict[str, dict[str, Any]]) -> str:
    def row(name: str, result: dict[str, Any]) -> list[str]:
        seconds = result["seconds"]
        shown = "-" if seconds is None else f"{seconds:.0f}"
        return [f"`{name}`", *(_cell(result, column) for column in _COLUMNS), shown]

    rows = [row(name, result) for name, result in section.items()]
    return Table(["", *_COLUMNS.values(), "seconds"], rows).markdown()


def _markdown(results: dict[str, dict[str, Any]], study: LawsStudy) -> str:
    """The report: every section that has results."""

    def grid(section: str, rows: Sequence[str], columns: Sequence[str], column: str) -> str:
        found = results[section]
        cells = [
            [f"`{row}`", *(_cell(found.get(f"{row}-{name}"), column) for name in columns)]
            for row in rows
        ]
        return Table(["", *columns], cells).markdown()

    kappas = [f"kappa-{value:g}" for value in KAPPAS]
    regressed = ("umdqn-w", "qr-dqn", "iqn", "fqf")
    domains = [f"{name} [{low:g}, {high:g}]" for name, (low, high) in DOMAINS.items()]
    parts = {
        "tuned": ["## UMDQN, tuned for true laws", _full_table(results["tuned"])],
        "algorithms": ["## Algorithms at the paper's settings", _full_table(results["algorithms"])],
        "longer": [
            "## Choices over longer trainings",
            "Optimal actions of 47, mean over seeds, by steps. With a constant learning rate they "
            "come and go where two actions are nearly as good.",
            _choices(results["longer"]),
        ],
        "matrix": [
            "## Representation x metric",
            "W1 over all state-action pairs:",
            grid("matrix", list(REPRESENTATIONS), list(METRICS), "w1"),
            "W1 at (2, 6) RIGHT:",
            grid("matrix", list(REPRESENTATIONS), list(METRICS), "w1_figure"),
        ],
        "kappa": [
            "## The Huber threshold",
            "W1 at (2, 6) RIGHT:",
            grid("kappa", regressed, kappas, "w1_figure"),
            "W1 over all state-action pairs:",
            grid("kappa", regressed, kappas, "w1"),
        ],
        "direction": ["## Direction of the KL divergence", _full_table(results["direction"])],
        "domain": [
            "## Domain",
            f"Domains: {', '.join(domains)}.",
            _full_table(results["domain"]),
        ],
    }
    chosen = [text for section, part in parts.items() if results[section] for text in part]
    return "\n\n".join(["# How true are learned laws?", _preamble(results, study), *chosen]) + "\n"


def _choices(section: dict[str, dict[str, Any]]) -> str:
    steps = sorted({int(step) for found in section.values() for step in found["optimal_by_step"]})

    def cell(counts: list[int] | None) -> str:
        return "-" if counts is None else f"{np.mean(counts):.1f}"

    rows = [
        [f"`{name}`", *(cell(found["optimal_by_step"].get(str(step))) for step in steps)]
        for name, found in section.items()
    ]
    return Table(["", *(f"{step:,}" for step in steps)], rows).markdown()


def _preamble(results: dict[str, dict[str, Any]], study: LawsStudy) -> str:
    once = {
        study.key(section, name): result["seconds"] or 0.0
        for section, found in results.items()
        for name, result in found.items()
    }
    hours = sum(once.values()) / 3600
    machine = _machine()
    steps = {
        section: sorted({result["step"] for result in found.values()})
        for section, found in results.items()
        if found
    }
    lengths = "; ".join(
        f"{section}: {', '.join(f'{n:,}' for n in numbers)}" for section, numbers in steps.items()
    )
    return (
        f"Grid world, {study.seeds} seeds, {machine['cores']} cores, {machine['system']}; "
        f"{hours:.1f} hours of training. Steps a seed: {lengths}. The sections `algorithms` and "
        "`longer` have the preset `paper`, the others `tuned`.\n\n"
        "Distances to the exact laws, averaged over the 188 state-action pairs: mean over seeds "
        "(range over seeds). W1, Cramer and KS compare CDFs; mean, std and CVaR are absolute "
        "errors; crossing is the share of neighbouring quantiles in the wrong order."
    )


def _laws(study: LawsStudy, section: str, agents: Sequence[str]) -> Figure:
    rows = {}
    for agent in agents:
        run = load(study.run_path(study.key(section, agent)))
        rows[agent] = [run.law(FIGURE_STATE, seed) for seed in run.seeds]
    exact = truth(run.config.discount)[STATES.index(FIGURE_STATE)]
    preset, steps = run.config.preset, run.step
    title = f"Laws of the return at {FIGURE_STATE}, preset {preset}, {steps:,} steps"
    return laws_figure(rows, exact, run.agent.spec.action_names, title)


def _kappa_figure(results: dict[str, dict[str, Any]]) -> Figure:
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), constrained_layout=True, sharey=False)
    places = np.arange(len(KAPPAS))
    for axis, column in zip(axes, ("w1_figure", "w1"), strict=True):
        for colour, agent in zip(COLOURS, ("umdqn-w", "qr-dqn", "iqn", "fqf"), strict=False):
            names = [f"{agent}-kappa-{kappa:g}" for kappa in KAPPAS]
            done = [place for place in places if names[place] in results]
            if not done:
                continue
            numbers = np.array([values(results[names[place]], column) for place in done])
            axis.plot(done, numbers.mean(axis=1), "o-", color=colour, label=agent)
            axis.fill_between(
                done, numbers.min(axis=1), numbers.max(axis=1), color=colour, alpha=0.2, linewidth=0
            )
        axis.set_xticks(places, [f"{kappa:g}" for kappa in KAPPAS])
        axis.set_ylim(bottom=0)
        where = "at (2, 6) RIGHT" if column == "w1_figure" else "over all pairs"
        axis.set(xlabel="Huber threshold kappa", ylabel="W1 to the exact law", title=where)
        axis.grid(alpha=0.25)
    axes[0].legend(frameon=False)
    return figure
