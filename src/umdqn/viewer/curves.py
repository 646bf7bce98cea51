"""Learning curves: means and ranges over seeds, with as many points as a screen shows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from umdqn.viewer.numbers import plain
from umdqn.viewer.records import Table


class Window(NamedTuple):
    """The part of training that is shown, and the most points to show it with."""

    low: float
    high: float
    points: int


def curve(tables: Sequence[Table], window: Window) -> dict[str, Any]:
    """Return mean and range over all seeds of some tables.

    Where there are more evaluations than points, a point stands for several: the mean of their
    means, and a range that holds all of theirs, so that no spike is lost.
    """
    steps, values = _joined(tables)
    inside = _inside(steps, window)
    steps, values = steps[inside], values[inside]
    with warnings.catch_warnings():
        # Steps at which no seed has a number.
        warnings.simplefilter("ignore", RuntimeWarning)
        mean, low, high = (f(values, axis=1) for f in (np.nanmean, np.nanmin, np.nanmax))
    known = np.isfinite(mean)
    steps, mean, low, high = steps[known], mean[known], low[known], high[known]
    evaluations = len(steps)
    if evaluations > window.points:
        steps, mean, low, high = _condensed(steps, mean, low, high, window.points)
    return {
        "steps": plain(steps),
        "mean": plain(mean),
        "low": plain(low),
        "high": plain(high),
        "seeds": sum(len(table.seeds) for table in tables),
        "evaluations": evaluations,
    }


def _inside(steps: np.ndarray, window: Window) -> np.ndarray:
    """Return which steps are shown: those in the window, and one beyond it on either side."""
    first = max(int(np.searchsorted(steps, window.low)) - 1, 0)
    last = int(np.searchsorted(steps, window.high, side="right")) + 1
    chosen = np.zeros(len(steps), bool)
    chosen[first:last] = True
    return chosen


def _joined(tables: Sequence[Table]) -> tuple[np.ndarray, np.ndarray]:
    """Return the steps of all tables, and the values of all their seeds."""
    if not tables:
        # One seed without a number, so that there is something to take means of.
        return np.zeros(0), np.zeros((0, 1))
    if len(tables) == 1:
        return tables[0].steps, tables[0].values
    steps = np.unique(np.concatenate([table.steps for table in tables]))
    columns = []
    for table in tables:
        values = np.full((len(steps), len(table.seeds)), np.nan)
        values[np.searchsorted(steps, table.steps)] = table.values
        columns.append(values)
    return steps, np.concatenate(columns, axis=1)


def _condensed(
    steps: np.ndarray, mean: np.ndarray, low: np.ndarray, high: np.ndarray, points: int
) -> tuple[np.ndarray, ...]:
    """Merge neighbours into at most `points` points of equal width."""
    edges = np.linspace(steps[0], steps[-1], points + 1)[1:-1]
    bins = np.searchsorted(edges, steps, side="right")
    starts = np.flatnonzero(np.diff(bins, prepend=-1))
    counts = np.diff(starts, append=len(steps))
    return (
        np.add.reduceat(steps, starts) / counts,
        np.add.reduceat(mean, starts) / counts,
        np.minimum.reduceat(low, starts),
        np.maximum.reduceat(high, starts),
    )
