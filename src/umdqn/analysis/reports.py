"""What the commands print, as data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np

from umdqn.analysis.accuracy import crossing_rate, distances, summarise, truth
from umdqn.analysis.figures import laws_figure, save_figure
from umdqn.envs.grid_world import STATES, parse_state
from umdqn.loops import Returns
from umdqn.runs import Run
from umdqn.types import UmdqnError


def evaluation_report(run: Run, episodes: int) -> dict[str, Any]:
    """Returns of fresh episodes: over all seeds, and per seed."""
    by_seed = run.evaluate(episodes)
    together = jax.tree.map(lambda *parts: np.concatenate(parts), *by_seed.values())

    def summary(returns: Returns) -> dict[str, Any]:
        return {
            "return_mean": float(returns.undiscounted.mean()),
            "return_std": float(returns.undiscounted.std()),
            "discounted_mean": float(returns.discounted.mean()),
            "episodes": len(returns.undiscounted),
        }

    seeds = {str(seed): summary(returns) for seed, returns in by_seed.items()}
    return {**summary(together), "step": run.step, "seeds": seeds}


def accuracy_report(run: Run) -> dict[str, Any]:
    """Distance of the learned laws to the exact ones: averaged over seeds, and per seed."""
    require_exact_laws(run)
    discount = run.config.discount
    seeds = {
        str(seed): summarise(distances(run.agent, params, discount), discount)
        | {"crossing_rate": crossing_rate(run.agent, params)}
        for seed, params in run.params.items()
    }
    keys = next(iter(seeds.values()))
    mean = {key: float(np.mean([seed[key] for seed in seeds.values()])) for key in keys}
    return {**mean, "step": run.step, "seeds": seeds}


def draw_laws(run: Run, state: str, out: Path) -> None:
    """Draw the laws of all actions in a state of the grid world beside the exact ones."""
    require_exact_laws(run)
    position = parse_state(state)
    exact = truth(run.config.discount)[STATES.index(position)]
    learned = [run.law(position, seed) for seed in run.seeds]
    title = f"{run.config.label} on {run.config.env}, state {position}, {run.step:,} steps"
    save_figure(
        laws_figure({run.config.label: learned}, exact, run.agent.spec.action_names, title), out
    )


def require_exact_laws(run: Run) -> None:
    """Refuse environments whose exact laws nobody knows."""
    if run.config.env != "grid-world":
        raise UmdqnError(f"exact laws are known for grid-world only, not for {run.config.env!r}")
