"""Comparison of algorithms from the records of a sweep: tables and aggregates."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from umdqn.analysis.statistics import (
    STATISTICS,
    Estimate,
    estimate,
    mean,
    probability_of_improvement,
)
from umdqn.sweeps import axes_of, final
from umdqn.types import UmdqnError

Record = dict[str, Any]
# One evaluation is a matter of luck where returns go up and down.
_FIFTH = 5


def told(found: Estimate, runs: int) -> str:
    """An estimate in words: one run says nothing of how much runs differ."""
    return str(found) if runs > 1 else f"{found.value:.3f}"


def summary_table(records: Sequence[Record]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: the last evaluations of every point, mean over seeds with its interval."""
    axes = axes_of(records)
    points: dict[tuple[str, ...], list[Record]] = {}
    for record in final(records):
        points.setdefault(tuple(str(record.get(axis, "")) for axis in axes), []).append(record)
    rows = []
    for point, found in points.items():
        scores = np.array([[record["return_mean"]] for record in found])
        steps = max(record["step"] for record in found)
        shown = told(estimate(scores, mean), len(found))
        rows.append([*point, f"{steps:,}", str(len(found)), shown])
    return [*axes, "steps", "seeds", "return [95% interval]"], rows


def final_table(scores: Scores) -> tuple[list[str], list[list[str]]]:
    """Header and rows: what every algorithm comes to on every task, and how much it loses again."""
    rows = []
    for task in scores.tasks:
        for name in (name for name in scores.algorithms if task in scores.raw[name]):
            returns = scores.final(name, task)[:, None]
            shown = told(estimate(returns, mean), len(returns))
            best, step = scores.best(name, task)
            fall = f"{scores.fall(name, task):.3f}"
            rows.append([task, name, str(len(returns)), shown, f"{best:.3f} at {step:,}", fall])
    columns = ["seeds", "final return [95% interval]", "best evaluation", "fall"]
    return ["env", "algorithm", *columns], rows


class Scores(NamedTuple):
    """Returns of several algorithms on several tasks."""

    tasks: list[str]
    steps: dict[str, np.ndarray]
    """Steps of the evaluations, by task."""
    raw: dict[str, dict[str, np.ndarray]]
    """Returns [runs, evaluations] by algorithm and task."""
    longer: dict[str, int]
    """Where some runs went on after the last step at which all were evaluated: how far."""

    @property
    def algorithms(self) -> list[str]:
        """Names of the algorithms."""
        return list(self.raw)

    @property
    def common(self) -> list[str]:
        """The tasks that every algorithm was tried on: those on which they can be compared."""
        return [task for task in self.tasks if all(task in of for of in self.raw.values())]

    @property
    def repeated(self) -> list[str]:
        """Of the common tasks those with several runs of every algorithm; all if there are none.

        Statistics take as many runs on each: a task with one would leave but one on all others.
        """
        several = [
            task for task in self.common if all(len(of[task]) > 1 for of in self.raw.values())
        ]
        return several or self.common

    def final(self, algorithm: str, task: str) -> np.ndarray:
        """What every run has come to: the mean over the last fifth of its evaluations."""
        returns = self.raw[algorithm][task]
        return returns[:, -max(returns.shape[1] // _FIFTH, 1) :].mean(axis=1)

    def fall(self, algorithm: str, task: str) -> float:
        """How far runs are below their best so far, on average over the second half of training.

        As a share of the range of all evaluations on the task: 0 means that nothing is lost again.
        """
        returns = self.raw[algorithm][task]
        lost = np.maximum.accumulate(returns, axis=1) - returns
        everything = np.concatenate([of[task].ravel() for of in self.raw.values() if task in of])
        return float(lost[:, returns.shape[1] // 2 :].mean() / max(np.ptp(everything), 1e-12))

    def best(self, algorithm: str, task: str) -> tuple[float, int]:
        """The best evaluation of all runs together, and its step: the first on a tie."""
        means = self.raw[algorithm][task].mean(axis=0)
        return float(means.max()), int(self.steps[task][means.argmax()])

    @property
    def uneven(self) -> bool:
        """Whether an algorithm has more runs on some of the repeated tasks than on others."""
        counts = [{len(of[task]) for task in self.repeated} for of in self.raw.values()]
        return any(len(of) > 1 for of in counts)

    def bounds(self, task: str) -> tuple[float, float]:
        """Returns that count as 0 and as 1: the worst and the best final one of any run.

        Where all runs end alike, all are best.
        """
        ends = np.concatenate([self.final(name, task) for name in self.algorithms])
        low, high = float(ends.min()), float(ends.max())
        return low if high > low else high - 1.0, high

    def normalised(self, algorithm: str) -> np.ndarray:
        """Final scores [runs, tasks] on the repeated tasks: as many runs as all of them have."""
        return self._on_repeated(algorithm, lambda task: self.final(algorithm, task))

    def along(self, algorithm: str, shares: np.ndarray) -> np.ndarray:
        """Scores [runs, tasks, shares] when some share of training was done, on the same scale.

        Each is that of the last evaluation up to then; of the first, where there was none yet.
        """

        def so_far(task: str) -> np.ndarray:
            steps = self.steps[task]
            places = np.searchsorted(steps, shares * steps[-1], side="right") - 1
            return self.raw[algorithm][task][:, np.maximum(places, 0)]

        return self._on_repeated(algorithm, so_far)

    def _on_repeated(self, algorithm: str, of: Callable[[str], np.ndarray]) -> np.ndarray:
        """Returns [runs, ...] of each repeated task as scores: as many runs as all of them have."""
        runs = min(len(self.raw[algorithm][task]) for task in self.repeated)
        columns = []
        for task in self.repeated:
            low, high = self.bounds(task)
            columns.append((of(task)[:runs] - low) / (high - low))
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

    def improvements(
        self, ours: Sequence[str], others: Sequence[str]
    ) -> dict[tuple[str, str], Estimate]:
        """How probably one algorithm beats another on a random task, for pairs of two groups."""
        found: dict[tuple[str, str], Estimate] = {}
        for first, second in itertools.product(ours, others):
            known = {first, second} <= set(self.algorithms) and first != second
            # The other way round, a pair says the same.
            if known and (second, first) not in found:
                scores = self.normalised(first), self.normalised(second)
                found[first, second] = probability_of_improvement(*scores)
        return found

    def ranks(self) -> dict[str, dict[str, int]]:
        """Places of the algorithms on every task by mean final return; equals share the better."""
        means = {
            task: {name: self.final(name, task).mean() for name in self.algorithms}
            for task in self.repeated
        }
        return {
            name: {
                task: 1 + sum(bool(other > of_task[name]) for other in of_task.values())
                for task, of_task in means.items()
            }
            for name in self.algorithms
        }


def scores_of(records: Sequence[Record]) -> Scores:
    """The returns of all evaluations, by algorithm and task.

    Where other axes than environment and agent vary on one environment, their values belong to the
    algorithm's name.
    """
    envs = {record["env"] for record in records}
    varied = [
        axis
        for axis in axes_of(records)
        if axis not in ("env", "agent")
        and len({(record["env"], str(record.get(axis))) for record in records}) > len(envs)
    ]

    def algorithm(record: Record) -> str:
        return " ".join(
            [record["agent"], *(f"{axis}={record[axis]}" for axis in varied if axis in record)]
        )

    found: dict[str, dict[str, dict[int, dict[int, float]]]] = {}
    for record in records:
        of_task = found.setdefault(record["env"], {}).setdefault(algorithm(record), {})
        of_task.setdefault(record["seed"], {})[record["step"]] = record["return_mean"]
    steps: dict[str, np.ndarray] = {}
    longer: dict[str, int] = {}
    raw: dict[str, dict[str, np.ndarray]] = {algorithm(record): {} for record in records}
    for task, agents in found.items():
        evaluated = [set(run) for runs in agents.values() for run in runs.values()]
        common = sorted(set.intersection(*evaluated))
        if not common:
            raise UmdqnError(f"the runs on {task} were never evaluated at the same step")
        steps[task] = np.array(common)
        if (last := max(map(max, evaluated))) > common[-1]:
            longer[task] = last
        for name, runs in agents.items():
            raw[name][task] = np.array([[run[step] for step in common] for run in runs.values()])
    return Scores(list(found), steps, raw, longer)
