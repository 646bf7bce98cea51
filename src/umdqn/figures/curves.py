"""Figures of learning curves and of comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from umdqn.analysis.comparison import Scores
from umdqn.analysis.statistics import (
    STATISTICS,
    Curve,
    Estimate,
    mean,
    performance_profile,
    profile_band,
    sample_efficiency,
)
from umdqn.figures.style import COLOURS, panels

_WINDOW = 5
# Shorter for several environments together: the one with the fewest evaluations sets the points.
_WINDOW_TOGETHER = 3
_COLUMNS = 3
_STYLES = ("-", "--")


def _style(index: int) -> dict[str, Any]:
    """Return colour and dash pattern of a line."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "linestyle": _STYLES[index // len(COLOURS) % len(_STYLES)],
    }


def curves_figure(scores: Scores, algorithms: Sequence[str], title: str) -> Figure:
    """Draw one panel per task: moving average of the mean return over seeds, with its 95% band."""
    count = len(scores.tasks)
    rows = -(-count // _COLUMNS)
    columns = -(-count // rows)
    size = (max(4.6 * columns, 8.0), 3.3 * rows + 1.2)
    figure, axes = panels(rows, columns, size)
    for task, axis in zip(scores.tasks, axes.flat, strict=False):
        for index, algorithm in enumerate(algorithms):
            if task not in scores.raw[algorithm]:
                continue
            runs = scores.raw[algorithm][task][:, None, :]
            curve = sample_efficiency(scores.steps[task], runs, mean, window=_WINDOW)
            _draw_curve(axis, curve, algorithm, _style(index))
        axis.set_title(task)
        axis.set_xlabel("steps")
        axis.xaxis.set_major_locator(MaxNLocator(5))
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))
        axis.set_ylabel("return of an episode")
        axis.grid(alpha=0.25)
    for axis in axes.flat[count:]:
        axis.set_visible(False)
    _legend(figure, axes.flat)
    figure.suptitle(title)
    return figure


def efficiency_figure(scores: Scores, title: str) -> Figure:
    """Draw the interquartile mean over all tasks and runs along training, with its band."""
    figure, ((axis,),) = panels(1, 1, (7, 4.4))
    count = min(len(scores.steps[task]) for task in scores.repeated)
    shares = np.arange(1, count + 1) / count
    for index, algorithm in enumerate(scores.algorithms):
        curve = sample_efficiency(shares, scores.along(algorithm, shares), window=_WINDOW_TOGETHER)
        _draw_curve(axis, curve, algorithm, _style(index))
    axis.set_xlabel("share of training")
    axis.set_ylabel("IQM of normalised returns")
    axis.grid(alpha=0.25)
    _legend(figure, [axis])
    axis.set_title(title)
    return figure


def _draw_curve(axis: Axes, curve: Curve, name: str, style: dict[str, Any]) -> None:
    # A single evaluation makes no line.
    marker = "o" if len(curve.steps) == 1 else None
    axis.plot(curve.steps, curve.value, linewidth=1.5, marker=marker, label=name, **style)
    band = {"color": style["color"], "alpha": 0.15, "linewidth": 0}
    axis.fill_between(curve.steps, curve.low, curve.high, **band)


def aggregates_figure(scores: Scores, title: str) -> Figure:
    """Draw every statistic over all tasks, with its interval."""
    size = (13, 1.2 + 0.38 * len(scores.algorithms))
    figure, (axes,) = panels(1, len(STATISTICS), size)
    aggregates = scores.aggregates()
    places = np.arange(len(scores.algorithms))
    for axis, statistic in zip(axes, STATISTICS, strict=True):
        for place, (_, values) in zip(places, aggregates.items(), strict=True):
            _interval(axis, int(place), values[statistic], _style(int(place))["color"])
        # Otherwise an interval ends at the edge of the panel and looks cut off.
        axis.use_sticky_edges = False
        axis.set_title(statistic)
        axis.set_xlabel("normalised final return")
        axis.set_yticks(places, scores.algorithms if axis is axes[0] else [""] * len(places))
        axis.invert_yaxis()
        axis.grid(alpha=0.25, axis="x")
    figure.suptitle(title)
    return figure


def _interval(axis: Axes, place: int, found: Estimate, colour: str) -> None:
    """Draw an estimate as a line in the bar of its interval."""
    width = found.high - found.low
    axis.barh(place, width, left=found.low, height=0.6, color=colour, alpha=0.45)
    ends = [place - 0.3, place + 0.3]
    axis.plot([found.value, found.value], ends, color="black", linewidth=1.5)


def profiles_figure(scores: Scores, title: str) -> Figure:
    """Draw the share of runs above every normalised score."""
    figure, ((axis,),) = panels(1, 1, (7, 4.4))
    thresholds = np.linspace(0, 1, 101)
    for index, algorithm in enumerate(scores.algorithms):
        normalised = scores.normalised(algorithm)
        style = _style(index)
        profile = performance_profile(normalised, thresholds)
        axis.plot(thresholds, profile, linewidth=1.5, label=algorithm, **style)
        band = profile_band(normalised, thresholds)
        axis.fill_between(thresholds, *band, color=style["color"], alpha=0.12, linewidth=0)
    axis.set_xlabel("normalised final return")
    axis.set_ylabel("share of runs above")
    axis.grid(alpha=0.25)
    _legend(figure, [axis])
    axis.set_title(title)
    return figure


def improvement_figure(improvements: Mapping[tuple[str, str], Estimate], title: str) -> Figure:
    """Draw the probability that one algorithm beats another on a random task, with its interval."""
    ours = list(dict.fromkeys(first for first, _ in improvements))
    figure, ((axis,),) = panels(1, 1, (7, 1.4 + 0.27 * len(improvements)))
    for place, ((first, _), found) in enumerate(improvements.items()):
        _interval(axis, place, found, COLOURS[ours.index(first) % len(COLOURS)])
    axis.axvline(0.5, color="grey", linestyle=":")
    axis.set_yticks(range(len(improvements)), [" > ".join(pair) for pair in improvements])
    axis.invert_yaxis()
    # With a margin: an interval that ends at the edge looks cut off.
    axis.set_xlim(-0.02, 1.02)
    axis.set_xlabel("probability of improvement")
    axis.grid(alpha=0.25, axis="x")
    axis.set_title(title)
    return figure


def _legend(figure: Figure, axes: Iterable[Axes]) -> None:
    found = [zip(*reversed(axis.get_legend_handles_labels()), strict=True) for axis in axes]
    entries = dict(entry for axis in found for entry in axis)
    labels, handles = list(entries), list(entries.values())
    # As many columns as fit: a letter takes about 0.09 inches, a line and gaps 0.7.
    width = 0.7 + 0.09 * max(map(len, labels), default=0)
    columns = max(min(len(labels), int(figure.get_figwidth() / width)), 1)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
