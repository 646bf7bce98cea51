"""Comparison of algorithms from the records of sweeps: tables and aggregates."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from umdqn.analysis.reference import reference_scores
from umdqn.analysis.statistics import (
    FEW,
    STATISTICS,
    Estimate,
    estimate,
    mean,
    probability_of_improvement,
)
from umdqn.errors import UmdqnError
from umdqn.sweeps.results import axes_of, final

Record = dict[str, Any]
# Final returns are averaged over the last fifth of evaluations: single ones fluctuate.
_FIFTH = 5


def told(found: Estimate, runs: int) -> str:
    """Format an estimate, without an interval where there are too few runs for one."""
    if runs >= FEW:
        return str(found)
    return f"{found.value:.3f} ({runs} run{'s' * (runs > 1)})"


def summary_table(records: Sequence[Record]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: last evaluation of every point, mean over seeds with its interval."""
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
    """Return header and rows: final return, best evaluation and fall, by task and algorithm."""
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


def scales_table(scores: Scores) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: what normalised scores count as 0 and 1 on each environment."""
    rows = []
    for task in scores.repeated:
        low, high = scores.bounds(task)
        known = reference_scores().get(task)
        zero, one = ("worst run here", "best run here")
        if known is not None:
            zero, one = "uniformly random policy", known.high_source
        rows.append([task, f"{low:.4g}: {zero}", f"{high:.4g}: {one}"])
    return ["env", "0 is", "1 is"], rows


class Scores(NamedTuple):
    """Returns of several algorithms on several tasks."""

    tasks: list[str]
    steps: dict[str, np.ndarray]
    """Steps of the evaluations, by task."""
    raw: dict[str, dict[str, np.ndarray]]
    """Returns [runs, evaluations] by algorithm and task."""
    longer: dict[str, int]
    """Last step of the longest run, for tasks where not all runs are equally long."""

    @property
    def algorithms(self) -> list[str]:
        """Names of the algorithms."""
        return list(self.raw)

    @property
    def common(self) -> list[str]:
        """The tasks that every algorithm was trained on."""
        return [task for task in self.tasks if all(task in of for of in self.raw.values())]

    @property
    def repeated(self) -> list[str]:
        """The common tasks with several runs of every algorithm; all common ones if there are none.

        Statistics need the same number of runs on each task: a task with one run would reduce all
        others to one.
        """
        several = [
            task for task in self.common if all(len(of[task]) > 1 for of in self.raw.values())
        ]
        return several or self.common

    def final(self, algorithm: str, task: str) -> np.ndarray:
        """Return the mean over the last fifth of evaluations, per run."""
        returns = self.raw[algorithm][task]
        return returns[:, -max(returns.shape[1] // _FIFTH, 1) :].mean(axis=1)

    def fall(self, algorithm: str, task: str) -> float:
        """Return the mean distance below the best return so far, over the second half of training.

        As a share of the range of all evaluations on the task: 0 if returns never drop.
        """
        returns = self.raw[algorithm][task]
        lost = np.maximum.accumulate(returns, axis=1) - returns
        everything = np.concatenate([of[task].ravel() for of in self.raw.values() if task in of])
        return float(lost[:, returns.shape[1] // 2 :].mean() / max(np.ptp(everything), 1e-12))

    def best(self, algorithm: str, task: str) -> tuple[float, int]:
        """Return the best mean over runs of an evaluation, and its step; the first on a tie."""
        means = self.raw[algorithm][task].mean(axis=0)
        return float(means.max()), int(self.steps[task][means.argmax()])

    @property
    def uneven(self) -> bool:
        """Whether an algorithm has different numbers of runs on the repeated tasks."""
        counts = [{len(of[task]) for task in self.repeated} for of in self.raw.values()]
        return any(len(of) > 1 for of in counts)

    @property
    def fewest(self) -> int:
        """The smallest number of runs that count for an algorithm on a repeated task."""
        return min(len(self.raw[name][task]) for name in self.algorithms for task in self.repeated)

    def bounds(self, task: str) -> tuple[float, float]:
        """Return the returns that are normalised to 0 and 1.

        They are the known ones where there are any, else the worst and the best final return of any
        run; if all of these are equal, all count as 1.
        """
        known = reference_scores().get(task)
        if known is not None:
            return known.low, known.high
        ends = np.concatenate([self.final(name, task) for name in self.algorithms])
        low, high = float(ends.min()), float(ends.max())
        return low if high > low else high - 1.0, high

    def normalised(self, algorithm: str) -> np.ndarray:
        """Return normalised final returns [runs, tasks] on the repeated tasks."""
        return self._on_repeated(algorithm, lambda task: self.final(algorithm, task))

    def along(self, algorithm: str, shares: np.ndarray) -> np.ndarray:
        """Return normalised returns [runs, tasks, shares] after given shares of training.

        Each is that of the last evaluation up to then, or of the first if there is none yet.
        """

        def so_far(task: str) -> np.ndarray:
            steps = self.steps[task]
            places = np.searchsorted(steps, shares * steps[-1], side="right") - 1
            return self.raw[algorithm][task][:, np.maximum(places, 0)]

        return self._on_repeated(algorithm, so_far)

    def _on_repeated(self, algorithm: str, of: Callable[[str], np.ndarray]) -> np.ndarray:
        """Normalise returns [runs, ...] of the repeated tasks, with equally many runs of each."""
        runs = min(len(self.raw[algorithm][task]) for task in self.repeated)
        columns = []
        for task in self.repeated:
            low, high = self.bounds(task)
            columns.append((of(task)[:runs] - low) / (high - low))
        return np.stack(columns, axis=1)

    def aggregates(self) -> dict[str, dict[str, Estimate]]:
        """Return every statistic of every algorithm."""
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
        """Return probabilities of improvement for all pairs of two groups of algorithms."""
        found: dict[tuple[str, str], Estimate] = {}
        for first, second in itertools.product(ours, others):
            known = {first, second} <= set(self.algorithms) and first != second
            # The reverse pair has the complementary probability.
            if known and (second, first) not in found:
                scores = self.normalised(first), self.normalised(second)
                found[first, second] = probability_of_improvement(*scores)
        return found

    def ranks(self) -> dict[str, dict[str, int]]:
        """Return ranks on every task by mean final return; ties get the better rank."""
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
    """Return the returns of all evaluations, by algorithm and task.

    Axes other than environment and agent become part of the algorithm's name if they vary on one
    environment.
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
