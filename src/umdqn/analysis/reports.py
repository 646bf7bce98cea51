"""What the commands print, as data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from umdqn.analysis.accuracy import crossing_rate, distances, summarise, truth
from umdqn.analysis.figures import laws_figure, save_figure
from umdqn.envs.grid_world import STATES, parse_state
from umdqn.laws import Law
from umdqn.loops import Returns
from umdqn.runs import Run
from umdqn.runs.fields import read_number
from umdqn.types import UmdqnError, check


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
    return {**summary(together), "step": run.step, "seeds": run.with_steps(seeds)}


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
    return {**mean, "step": run.step, "seeds": run.with_steps(seeds)}


def draw_laws(run: Run, state: str, out: Path) -> None:
    """Draw the laws of all actions in a state, beside the exact ones where they are known."""
    exact: Sequence[Law] | None = None
    seen: tuple[float, ...]
    if run.config.env == "grid-world":
        seen = position = parse_state(state)
        exact = truth(run.config.discount)[STATES.index(position)]
    else:
        seen = _parse_observation(run, state)
    learned = [run.law(seen, seed) for seed in run.seeds]
    title = f"{run.config.label} on {run.config.env}, state {seen}, {run.age}"
    save_figure(
        laws_figure({run.config.label: learned}, exact, run.agent.spec.action_names, title), out
    )


def _parse_observation(run: Run, text: str) -> tuple[float, ...]:
    """An observation of numbers from text such as `0,0,0.1,0`."""
    shape = run.spec.observation.shape
    if len(shape) != 1:
        raise UmdqnError(
            f"state {text!r}: {run.config.env} observes pictures; umdqn watch draws their laws"
        )
    values = tuple(read_number("state", float, part) for part in text.split(","))
    allowed = f"{shape[0]} numbers with commas between them"
    check(len(values) == shape[0], "state", text, allowed)
    return values


def require_exact_laws(run: Run) -> None:
    """Refuse environments whose exact laws nobody knows."""
    if run.config.env != "grid-world":
        raise UmdqnError(f"exact laws are known for grid-world only, not for {run.config.env!r}")
