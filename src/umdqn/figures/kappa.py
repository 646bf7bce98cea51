"""The figure of accuracy against the Huber threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from umdqn.figures.style import COLOURS, panels


def kappa_figure(
    results: Mapping[str, Mapping[str, Any]], agents: Sequence[str], kappas: Sequence[float]
) -> Figure:
    """Draw W1 to the exact laws against kappa; lines are means and bands ranges over seeds.

    `results` maps `AGENT-kappa-VALUE` to a result of the study of laws.
    """
    figure, (axes,) = panels(1, 2, (8, 3.2))
    places = np.arange(len(kappas))
    for axis, column in zip(axes, ("w1_figure", "w1"), strict=True):
        for colour, agent in zip(COLOURS, agents, strict=False):
            names = [f"{agent}-kappa-{kappa:g}" for kappa in kappas]
            done = [place for place in places if names[place] in results]
            if not done:
                continue
            seeds = [results[names[place]]["seeds"].values() for place in done]
            low, mean, high = np.array([_range(found, column) for found in seeds]).T
            axis.plot(done, mean, "o-", color=colour, label=agent)
            axis.fill_between(done, low, high, color=colour, alpha=0.2, linewidth=0)
        axis.set_xticks(places, [f"{kappa:g}" for kappa in kappas])
        axis.set_ylim(bottom=0)
        where = "at (2, 6) RIGHT" if column == "w1_figure" else "over all pairs"
        axis.set(xlabel="Huber threshold kappa", ylabel="W1 to the exact law", title=where)
        axis.grid(alpha=0.25)
    axes[0].legend(frameon=False)
    return figure


def _range(seeds: Any, column: str) -> tuple[float, float, float]:
    """Return minimum, mean and maximum over seeds."""
    numbers = [seed[column] for seed in seeds]
    return min(numbers), float(np.mean(numbers)), max(numbers)
