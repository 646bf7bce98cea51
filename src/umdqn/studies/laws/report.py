"""The report of the study of laws: tables, JSON and figures."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from umdqn.runs.files import write_bytes, write_json
from umdqn.runs.run import load
from umdqn.studies.laws.cases import DOMAINS, KAPPAS, METRICS, REGRESSED, REPRESENTATIONS, UMDQN
from umdqn.studies.laws.study import LawsStudy
from umdqn.studies.measured import Result
from umdqn.studies.pages import Table
from umdqn.studies.study import Tell
from umdqn.sweeps.plan import Job

Results = dict[str, dict[str, Result]]
"""Results of cases, by section and name."""

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


def write_report(study: LawsStudy, tell: Tell) -> list[Path]:
    """Write the report on all finished cases; return the files written."""
    results = study.results(tell)
    written = [study.out / "results.json", study.out / "report.md"]
    write_json(written[0], {"machine": _machine(), "sections": results})
    write_bytes(written[1], _markdown(results).encode())
    return written + _draw(study, results)


def _draw(study: LawsStudy, results: Results) -> list[Path]:
    """Draw all figures that there are results for; return the files written."""
    from umdqn.figures.kappa import kappa_figure
    from umdqn.figures.style import save_figure

    written = []
    finished = study.finished()
    for name, (section, agents) in _FIGURES.items():
        done = {agent: finished[section][agent] for agent in agents if agent in finished[section]}
        if done:
            written.append(study.out / f"{name}.png")
            save_figure(_laws(study, done), written[-1])
    if results["kappa"]:
        written.append(study.out / "kappa.png")
        save_figure(kappa_figure(results["kappa"], REGRESSED, KAPPAS), written[-1])
    return written


def _machine() -> dict[str, Any]:
    return {"system": platform.platform(), "cores": os.cpu_count()}


def values(result: dict[str, Any], column: str) -> np.ndarray:
    """Return one column of a result, per seed."""
    return np.array([seed[column] for seed in result["seeds"].values()])


def _cell(result: dict[str, Any] | None, column: str) -> str:
    """Return the mean over seeds, and their range."""
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
        return [name, *(_cell(result, column) for column in _COLUMNS), shown]

    rows = [row(name, result) for name, result in section.items()]
    return Table(["", *_COLUMNS.values(), "seconds"], rows).markdown()


def _grid(
    section: dict[str, dict[str, Any]], rows: Sequence[str], columns: Sequence[str], column: str
) -> str:
    """Return one number of every pair of a row and a column, as a table."""
    cells = [
        [row, *(_cell(section.get(f"{row}-{name}"), column) for name in columns)] for row in rows
    ]
    return Table(["", *columns], cells).markdown()


def _grids(section: dict[str, dict[str, Any]], rows: Sequence[str], names: Sequence[str]) -> str:
    """Return both distances: over all pairs, and at the paper's figure."""
    everywhere = _grid(section, rows, names, "w1")
    figure = _grid(section, rows, names, "w1_figure")
    return f"W1 over all state-action pairs:\n\n{everywhere}\n\nW1 at (2, 6) RIGHT:\n\n{figure}"


def _markdown(results: Results) -> str:
    """Return the report: every section that has results."""
    kappas = [f"kappa-{value:g}" for value in KAPPAS]
    domains = [f"{name} [{low:g}, {high:g}]" for name, (low, high) in DOMAINS.items()]
    parts = {
        "tuned": ["UMDQN, tuned for accurate laws", _full_table(results["tuned"])],
        "algorithms": ["Algorithms at the paper's settings", _full_table(results["algorithms"])],
        "longer": [
            "Choices over longer trainings",
            "Optimal actions of 47, mean over seeds, by steps. With a constant learning rate, "
            "choices between nearly equal actions fluctuate.",
            _choices(results["longer"]),
        ],
        "matrix": [
            "Representation x metric",
            _grids(results["matrix"], list(REPRESENTATIONS), list(METRICS)),
        ],
        "kappa": ["The Huber threshold", _grids(results["kappa"], REGRESSED, kappas)],
        "direction": ["Direction of the KL divergence", _full_table(results["direction"])],
        "domain": ["Domain", f"Domains: {', '.join(domains)}.", _full_table(results["domain"])],
    }
    lines = ["# How accurate are learned laws?", _preamble(results)]
    for section, (title, *texts) in parts.items():
        if results[section]:
            lines += [f"## {title}", *texts]
    return "\n\n".join(lines) + "\n"


def _choices(section: dict[str, dict[str, Any]]) -> str:
    steps = sorted({int(step) for found in section.values() for step in found["optimal_by_step"]})

    def cell(counts: list[int] | None) -> str:
        return "-" if counts is None else f"{np.mean(counts):.1f}"

    rows = [
        [name, *(cell(found["optimal_by_step"].get(str(step))) for step in steps)]
        for name, found in section.items()
    ]
    return Table(["", *(f"{step:,}" for step in steps)], rows).markdown()


def _preamble(results: Results) -> str:
    every = [result for found in results.values() for result in found.values()]
    # Cases that two sections share count once.
    once = {json.dumps(result["config"]): result["seconds"] or 0.0 for result in every}
    hours = sum(once.values()) / 3600
    seeds = " or ".join(map(str, sorted({len(result["seeds"]) for result in every})))
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
        f"Grid world, {seeds} seeds, {machine['cores']} cores, {machine['system']}; "
        f"{hours:.1f} hours of training. Steps per seed: {lengths}. The sections `algorithms` and "
        "`longer` have the preset `paper`, the others `tuned`.\n\n"
        "Distances to the exact laws, averaged over the 188 state-action pairs: mean over seeds "
        "(range over seeds). W1, Cramer and KS compare CDFs; mean, std and CVaR are absolute "
        "errors; crossing is the share of neighbouring quantiles in the wrong order."
    )


def _laws(study: LawsStudy, cases: dict[str, list[Job]]) -> Any:
    """Draw the laws of some cases, all seeds of each, beside the exact ones."""
    from umdqn.figures.laws import figure_state_laws

    rows = {name: [load(study.run_path(job)) for job in jobs] for name, jobs in cases.items()}
    config, step = next(iter(rows.values()))[0].config, next(iter(rows.values()))[0].step
    return figure_state_laws(rows, f"preset {config.preset}, {step:,} steps")
