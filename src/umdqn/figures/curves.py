"""Figures of learning curves and of comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from umdqn.analysis.comparison import Scores
from umdqn.analysis.statistics import (
    FEW,
    STATISTICS,
    Curve,
    Estimate,
    mean,
    moving_average,
    performance_profile,
    profile_band,
    sample_efficiency,
)
from umdqn.figures.style import COLOURS, legend, panels
from umdqn.text import drawn

WINDOW = 5
"""Evaluations that a point of a learning curve averages."""
WINDOW_TOGETHER = 3
"""The same for environments together, where the fewest evaluations set the points."""
_COLUMNS = 3
_STYLES = ("-", "--")
# Beside 0 and 1: an interval that ends at the edge looks cut off.
_MARGIN = 0.03


def _style(index: int) -> dict[str, Any]:
    """Return colour and dash pattern of a line."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": _STYLES[index // len(COLOURS) % len(_STYLES)],
    }


def curves_figure(scores: Scores, algorithms: Sequence[str], title: str = "") -> Figure:
    """Draw one panel per task: returns averaged over neighbouring evaluations.

    Of `FEW` runs or more, their mean with its 95% band; of fewer, their mean and every run.
    """
    count = len(scores.tasks)
    rows = -(-count // _COLUMNS)
    columns = -(-count // rows)
    figure, axes = panels(rows, columns, (max(3.5 * columns, 5.5), 2.7 * rows + 0.7))
    for task, axis in zip(scores.tasks, axes.flat, strict=False):
        for index, algorithm in enumerate(algorithms):
            if task in scores.raw[algorithm]:
                _draw_runs(axis, scores, algorithm, task, _style(index))
        numbers = {len(of[task]) for of in scores.raw.values() if task in of}
        axis.set_title(f"{drawn(task, 40)}, {_runs(numbers)}")
        axis.xaxis.set_major_locator(MaxNLocator(4))
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))
        axis.grid(alpha=0.25)
    for axis in axes[-1]:
        axis.set_xlabel("environment steps")
    for axis in axes[:, 0]:
        axis.set_ylabel("return")
    for place, axis in enumerate(axes.flat[count:], start=count):
        axis.set_visible(False)
        # The panel above is the last one of its column.
        axes.flat[place - columns].set_xlabel("environment steps")
    legend(figure, axes.flat)
    if title:
        figure.suptitle(drawn(title))
    return figure


def _runs(numbers: set[int]) -> str:
    shown = " or ".join(map(str, sorted(numbers)))
    return f"{shown} run{'s' * (numbers != {1})}"


def _draw_runs(
    axis: Axes, scores: Scores, algorithm: str, task: str, style: dict[str, Any]
) -> None:
    """Draw the mean of an algorithm's runs on a task, with its band or with every run."""
    runs, steps = scores.raw[algorithm][task], scores.steps[task]
    curve = sample_efficiency(steps, runs[:, None, :], mean, window=WINDOW)
    _draw_curve(axis, curve, algorithm, style, band=len(runs) >= FEW)
    if 1 < len(runs) < FEW:
        single = moving_average(runs, WINDOW)
        axis.plot(steps, single.T, color=style["color"], linewidth=0.6, alpha=0.5)


def efficiency_figure(scores: Scores, title: str = "") -> Figure:
    """Draw the interquartile mean over all tasks and runs along training, with its band."""
    figure, ((axis,),) = panels(1, 1, (5.5, 3.8))
    count = min(len(scores.steps[task]) for task in scores.repeated)
    shares = np.arange(1, count + 1) / count
    for index, algorithm in enumerate(scores.algorithms):
        curve = sample_efficiency(shares, scores.along(algorithm, shares), window=WINDOW_TOGETHER)
        _draw_curve(axis, curve, algorithm, _style(index), band=scores.fewest >= FEW)
    axis.xaxis.set_major_formatter(lambda share, place: f"{share:.0%}")
    axis.set_xlabel("share of training")
    axis.set_ylabel("IQM of normalised returns")
    axis.grid(alpha=0.25)
    legend(figure, [axis])
    axis.set_title(drawn(title))
    return figure


def _draw_curve(axis: Axes, curve: Curve, name: str, style: dict[str, Any], band: bool) -> None:
    # A single evaluation makes no line.
    marker = "o" if len(curve.steps) == 1 else None
    axis.plot(curve.steps, curve.value, linewidth=1.6, marker=marker, label=drawn(name), **style)
    if band:
        filled = {"color": style["color"], "alpha": 0.15, "linewidth": 0}
        axis.fill_between(curve.steps, curve.low, curve.high, **filled)


def aggregates_figure(scores: Scores, title: str = "") -> Figure:
    """Draw every statistic over all tasks, with its interval."""
    size = (10.5, 1.1 + 0.3 * len(scores.algorithms))
    figure, (axes,) = panels(1, len(STATISTICS), size)
    aggregates = scores.aggregates()
    places = np.arange(len(scores.algorithms))
    names = [drawn(name) for name in scores.algorithms]
    for axis, statistic in zip(axes, STATISTICS, strict=True):
        for place, (_, values) in zip(places, aggregates.items(), strict=True):
            colour = _style(int(place))["color"]
            _interval(axis, int(place), values[statistic], colour, scores.fewest)
        # Otherwise an interval ends at the edge of the panel and looks cut off.
        axis.use_sticky_edges = False
        axis.set_title(statistic)
        axis.xaxis.set_major_locator(MaxNLocator(4))
        axis.set_yticks(places, names if axis is axes[0] else [""] * len(places))
        axis.invert_yaxis()
        axis.grid(alpha=0.25, axis="x")
    figure.supxlabel("normalised final return", fontsize="medium")
    if title:
        figure.suptitle(drawn(title))
    return figure


def _interval(axis: Axes, place: int, found: Estimate, colour: str, runs: int) -> None:
    """Draw an estimate as a line in the bar of its interval; of few runs, the line alone."""
    if runs >= FEW:
        width = found.high - found.low
        axis.barh(place, width, left=found.low, height=0.6, color=colour, alpha=0.45)
    ends = [place - 0.3, place + 0.3]
    line: dict[str, Any] = {
        "color": "black" if runs >= FEW else colour,
        "linewidth": 1.5 if runs >= FEW else 3,
    }
    axis.plot([found.value, found.value], ends, **line)


def profiles_figure(scores: Scores, title: str = "") -> Figure:
    """Draw the share of runs above every normalised score."""
    figure, ((axis,),) = panels(1, 1, (5.5, 3.8))
    every = np.concatenate([scores.normalised(name).ravel() for name in scores.algorithms])
    # Known scales do not hold all runs.
    thresholds = np.linspace(min(every.min(), 0.0), max(every.max(), 1.0), 201)
    for index, algorithm in enumerate(scores.algorithms):
        normalised = scores.normalised(algorithm)
        style = _style(index)
        profile = performance_profile(normalised, thresholds)
        axis.plot(thresholds, profile, linewidth=1.6, label=drawn(algorithm), **style)
        if scores.fewest >= FEW:
            band = profile_band(normalised, thresholds)
            axis.fill_between(thresholds, *band, color=style["color"], alpha=0.12, linewidth=0)
    axis.yaxis.set_major_formatter(lambda share, place: f"{share:.0%}")
    axis.set_xlabel("normalised final return")
    axis.set_ylabel("share of runs above")
    axis.grid(alpha=0.25)
    legend(figure, [axis])
    axis.set_title(drawn(title))
    return figure


def improvement_figure(
    improvements: Mapping[tuple[str, str], Estimate], runs: int, title: str = ""
) -> Figure:
    """Draw the probability that one algorithm beats another on a random task, with its interval."""
    ours = list(dict.fromkeys(first for first, _ in improvements))
    figure, ((axis,),) = panels(1, 1, (5.5, 1.0 + 0.24 * len(improvements)))
    for place, ((first, _), found) in enumerate(improvements.items()):
        _interval(axis, place, found, COLOURS[ours.index(first) % len(COLOURS)], runs)
    axis.axvline(0.5, color="grey", linestyle=":")
    pairs = [f"{drawn(first, 40)} > {drawn(second, 40)}" for first, second in improvements]
    axis.set_yticks(range(len(improvements)), pairs)
    axis.invert_yaxis()
    axis.set_xlim(-_MARGIN, 1 + _MARGIN)
    axis.xaxis.set_major_formatter(lambda share, place: f"{share:.0%}")
    axis.set_xlabel("probability of a better final return")
    axis.grid(alpha=0.25, axis="x")
    axis.set_title(drawn(title))
    return figure
