"""The figure of `umdqn calibrate`."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from umdqn.calibration.scores import BINS, LEVELS
from umdqn.figures.style import COLOURS, panels, save_figure
from umdqn.text import drawn, literal, visible

# Characters of the verdict on one line above the panels.
_LINE = 90
_WORD = 8
# Axes are never narrower than this share of what they show: rounding would look like an error.
_NARROWEST = 0.05


def draw_calibration(report: dict[str, Any], title: str, out: Path) -> None:
    """Write a figure of transforms, coverage, and returns beside the laws that predicted them."""
    save_figure(_figure(report, title), out)


def _figure(report: dict[str, Any], title: str) -> Figure:
    figure, ((left, middle, right),) = panels(1, 3, (11, 4.1))
    _draw_histogram(left, report)
    _draw_coverage(middle, report)
    _draw_groups(right, report)
    for axis in (left, middle, right):
        axis.grid(alpha=0.25)
    # The verdict is what one should read first; the rest is the evidence.
    verdict = visible(report["verdict"])
    # Lines of about equal length.
    width = -(-len(verdict) // -(-len(verdict) // _LINE)) + _WORD
    lines = textwrap.wrap(f"{verdict[:1].upper()}{verdict[1:]}", width)
    figure.suptitle("\n".join(map(literal, lines)), fontsize="large", fontweight="bold")
    figure.supxlabel(
        f"{drawn(title, 100)}, {report['episodes']:,} episodes", fontsize="small", color="dimgrey"
    )
    return figure


def _draw_histogram(left: Axes, report: dict[str, Any]) -> None:
    edges = np.linspace(0, 1, BINS + 1)
    # Episodes are independent; the steps of one are at worst equal.
    error = 2 * np.sqrt((BINS - 1) / report["effective_episodes"])
    left.axhspan(max(1 - error, 0), 1 + error, color="black", alpha=0.08, linewidth=0)
    if len(report["seeds"]) > 1:
        for number, seed in enumerate(report["seeds"].values()):
            label = "each seed" if number == 0 else None
            heights = np.array(seed["pit"]) * BINS
            left.stairs(heights, edges, color=COLOURS[5], alpha=0.6, label=label)
    pit = np.array(report["pit"]) * BINS
    label = "all seeds" if len(report["seeds"]) > 1 else "found"
    left.stairs(pit, edges, color=COLOURS[0], linewidth=2, label=label)
    left.axhline(1.0, color="black", linestyle=":", label="calibrated, ± 2 s.e.")
    left.set(xlabel="share of mass below the return (PIT)", ylabel="density")
    left.set(title="Where returns fall in their laws", xlim=(0, 1))
    left.set_ylim(0, max(1.35 * pit.max(), 2))
    left.legend(frameon=False, fontsize=9)


def _draw_coverage(middle: Axes, report: dict[str, Any]) -> None:
    levels = 100 * np.array(LEVELS)
    found = 100 * np.array([report["coverage"][f"{level:g}"] for level in LEVELS])
    errors = 200 * np.array([report["coverage_error"][f"{level:g}"] for level in LEVELS])
    middle.plot([0, 100], [0, 100], color="black", linestyle=":", label="calibrated")
    middle.errorbar(
        levels,
        found,
        yerr=errors,
        fmt="o",
        color=COLOURS[0],
        capsize=3,
        label="found, ± 2 s.e.",
    )
    middle.set(xlabel="central interval of the law (%)", ylabel="returns inside (%)")
    middle.set(title="Coverage", xlim=(40, 102))
    middle.set_ylim(min(40, float((found - errors).min()) - 3), 103)
    middle.legend(frameon=False, fontsize=9, loc="lower right" if found[0] > 50 else "upper left")


def _draw_groups(right: Axes, report: dict[str, Any]) -> None:
    """Draw groups of returns with equal predictions; positions along the axis are ranks."""
    groups = {key: np.array([g[key] for g in report["groups"]]) for key in report["groups"][0]}
    places = np.arange(1, len(groups["predicted"]) + 1)
    bars = [("predicted", "laws", COLOURS[1], -0.12), ("realised", "returns", COLOURS[0], 0.12)]
    for name, label, colour, shift in bars:
        middle = groups[name]
        # Of a skewed law, the mean may lie outside of the interval.
        spans = np.array([middle - groups[f"{name}_low"], groups[f"{name}_high"] - middle])
        right.errorbar(
            places + shift,
            middle,
            yerr=np.maximum(spans, 0),
            fmt="o",
            markersize=4,
            color=colour,
            label=label,
        )
    low, high = right.get_ylim()
    missing = max(_NARROWEST * max(abs(low), abs(high)) - (high - low), 0.0)
    low, high = low - missing / 2, high + missing / 2
    # Room for the legend.
    right.set_ylim(low, high + 0.12 * (high - low))
    right.set(xlabel="tenth of steps, by predicted mean", ylabel="return")
    right.set(title="Mean and central 90%")
    right.set_xticks(places)
    right.legend(frameon=False, fontsize=9, loc="upper left", ncols=2)
