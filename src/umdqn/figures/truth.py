"""The figure of how true laws are: distances to exact laws, by environment and agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from umdqn.figures.style import COLOURS, panels
from umdqn.text import drawn


def truth_figure(
    envs: Mapping[str, Mapping[str, Any]], agents: Sequence[str], title: str
) -> Figure:
    """Draw W1 over the standard deviation: one point per seed, a bar at their mean.

    `envs` maps an environment and an agent to a result of the study of truth. Dashed lines are
    statistical floors. Both are over the pairs of state and action that were tried.
    """
    figure, ((axis,),) = panels(1, 1, (2 + 1.8 * len(envs), 3.4))
    width = 0.8 / len(agents)
    for number, agent in enumerate(agents):
        colour = COLOURS[number % len(COLOURS)]
        label: str | None = agent
        for place, results in enumerate(envs.values()):
            distances = compared(results.get(agent))
            if not distances:
                continue
            x = place - 0.4 + (number + 0.5) * width
            axis.plot([x] * len(distances), distances, "o", color=colour, markersize=3, alpha=0.6)
            ends = (x - width / 3, x + width / 3)
            axis.plot(ends, [np.mean(distances)] * 2, color=colour, linewidth=2.5, label=label)
            label = None
    for place, results in enumerate(envs.values()):
        floors = [floor for result in results.values() for floor in _column(result, "floor")]
        if floors:
            axis.plot([place - 0.45, place + 0.45], [np.mean(floors)] * 2, "k--", linewidth=1)
    axis.plot([], [], "k--", linewidth=1, label="statistical floor")
    axis.set_xticks(range(len(envs)), [drawn(env, 30) for env in envs])
    axis.set_yscale("log")
    axis.set(ylabel="W1 to the exact law / standard deviation", title=drawn(title))
    axis.grid(axis="y", which="both", alpha=0.25)
    axis.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def compared(result: Any) -> list[float]:
    """Return the distance that each seed's floor is compared with: over pairs that were tried.

    Over all pairs where it is not known which were tried, as on the grid world.
    """
    return _column(result, "normalised_w1_tried") or _column(result, "normalised_w1")


def _column(result: Any, name: str) -> list[float]:
    """Return one number per seed, where it exists."""
    if result is None:
        return []
    return [seed[name] for seed in result["seeds"].values() if seed.get(name) is not None]
