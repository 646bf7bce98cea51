"""Comparison of algorithms from the records of a sweep: tables and aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from umdqn.analysis.statistics import STATISTICS, Estimate, estimate, mean
from umdqn.sweeps import axes_of, final
from umdqn.types import UmdqnError

Record = dict[str, Any]


def summary_table(records: Sequence[Record]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: the last evaluations of every point, mean over seeds with its interval."""
    axes = axes_of(records)
    points: dict[tuple[str, ...], list[Record]] = {}
    for record in final(records):
        points.setdefault(tuple(str(record[axis]) for axis in axes), []).append(record)
    rows = []
    for point, found in points.items():
        scores = np.array([[record["return_mean"]] for record in found])
        steps = max(record["step"] for record in found)
        rows.append([*point, f"{steps:,}", str(len(found)), str(estimate(scores, mean))])
    return [*axes, "steps", "seeds", "return [95% interval]"], rows


class Scores(NamedTuple):
    """Normalised scores of several algorithms on the same tasks."""

    tasks: list[str]
    steps: dict[str, np.ndarray]
    """Steps of the evaluations, by task."""
    raw: dict[str, dict[str, np.ndarray]]
    """Returns [runs, evaluations] by algorithm and task."""
    bounds: dict[str, tuple[float, float]]
    """Returns that count as 0 and as 1, by task."""

    @property
    def algorithms(self) -> list[str]:
        """Names of the algorithms."""
        return list(self.raw)

    def normalised(self, algorithm: str) -> np.ndarray:
        """Final scores [runs, tasks]."""
        columns = []
        for task in self.tasks:
            low, high = self.bounds[task]
            columns.append((self.raw[algorithm][task][:, -1] - low) / (high - low))
        return np.stack(columns, axis=1)

    def aggregates(self) -> dict[str, dict[str, Estimate]]:
        """Every statistic of every algorithm."""
        return {
            algorithm: {
                name: estimate(self.normalised(algorithm), statistic)
                for name, statistic in STATISTICS.items()
            }
            for algorithm in self.algorithms
        }

    def ranks(self) -> dict[str, dict[str, int]]:
        """Places of the algorithms on every task by mean final return; equals share the better."""
        means = {
            task: {name: self.raw[name][task][:, -1].mean() for name in self.algorithms}
            for task in self.tasks
        }
        return {
            name: {
                task: 1 + sum(other > means[task][name] for other in means[task].values())
                for task in self.tasks
            }
            for name in self.algorithms
        }


def scores_of(records: Sequence[Record]) -> Scores:
    """Scores by algorithm and task; 0 and 1 are the worst and best final return on a task."""
    found: dict[str, dict[str, dict[int, dict[int, float]]]] = {}
    for record in records:
        of_task = found.setdefault(record["agent"], {}).setdefault(record["env"], {})
        of_task.setdefault(record["seed"], {})[record["step"]] = record["return_mean"]
    tasks = [
        t for t in dict.fromkeys(r["env"] for r in records) if all(t in a for a in found.values())
    ]
    if not tasks:
        raise UmdqnError("no environment has results of every agent")
    steps, raw, bounds = {}, {name: {} for name in found}, {}
    for task in tasks:
        evaluated = [set(s) for agent in found.values() for s in agent[task].values()]
        common = sorted(set.intersection(*evaluated))
        steps[task] = np.array(common)
        for name, agent in found.items():
            raw[name][task] = np.array([[s[step] for step in common] for s in agent[task].values()])
        ends = np.concatenate([raw[name][task][:, -1] for name in found])
        low, high = float(ends.min()), float(ends.max())
        bounds[task] = (low, high if high > low else low + 1.0)
    _check_equal_runs(raw)
    return Scores(tasks, steps, raw, bounds)


def _check_equal_runs(raw: dict[str, dict[str, np.ndarray]]) -> None:
    for name, of_tasks in raw.items():
        counts = {task: len(runs) for task, runs in of_tasks.items()}
        if len(set(counts.values())) > 1:
            raise UmdqnError(f"{name} has different numbers of seeds: {counts}")
