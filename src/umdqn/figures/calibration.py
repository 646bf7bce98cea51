"""The figure of `umdqn calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from umdqn.calibration.scores import BINS, LEVELS
from umdqn.figures.style import COLOURS, panels, save_figure


def draw_calibration(report: dict[str, Any], title: str, out: Path) -> None:
    """Write a figure of the histogram of transforms and the coverage of central intervals."""
    save_figure(_figure(report, title), out)


def _figure(report: dict[str, Any], title: str) -> Figure:
    figure, ((left, right),) = panels(1, 2, (10, 4))
    _draw_histogram(left, report)
    _draw_coverage(right, report)
    for axis in (left, right):
        axis.grid(alpha=0.25)
    figure.suptitle(title)
    return figure


def _draw_histogram(left: Axes, report: dict[str, Any]) -> None:
    edges = np.linspace(0, 1, BINS + 1)
    for number, seed in enumerate(report["seeds"].values()):
        label = "each seed" if number == 0 else None
        left.stairs(np.array(seed["pit"]) * BINS, edges, color=COLOURS[5], alpha=0.6, label=label)
    pit = np.array(report["pit"]) * BINS
    left.stairs(pit, edges, color=COLOURS[0], linewidth=2, label="all seeds")
    left.axhline(1.0, color="black", linestyle=":", label="calibrated")
    left.legend(frameon=False)
    left.set(xlabel="probability below the realised return (PIT)", ylabel="density", xlim=(0, 1))
    left.set_ylim(bottom=0)


def _draw_coverage(right: Axes, report: dict[str, Any]) -> None:
    levels = np.array(LEVELS)
    found = np.array([report["coverage"][f"{level:g}"] for level in LEVELS])
    errors = 2 * np.array([report["coverage_error"][f"{level:g}"] for level in LEVELS])
    right.plot([0, 1], [0, 1], color="black", linestyle=":", label="calibrated")
    right.errorbar(
        levels,
        found,
        yerr=errors,
        fmt="o",
        color=COLOURS[0],
        capsize=3,
        label="found, +- 2 standard errors",
    )
    right.set(xlabel="central interval of the law", ylabel="share of returns inside")
    right.set(xlim=(0.4, 1.02), ylim=(min(0.4, float((found - errors).min()) - 0.02), 1.02))
    right.legend(frameon=False)
