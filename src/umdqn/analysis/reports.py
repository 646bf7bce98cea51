"""Reports on one run, as data: what `umdqn evaluate` and `umdqn accuracy` print."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from umdqn.analysis.accuracy import crossing_rate, distances, summarise
from umdqn.errors import UmdqnError
from umdqn.loops.evaluation import Returns
from umdqn.runs.run import Run

EXACT_ENV = "grid-world"
"""The environment whose exact laws are known."""


def evaluation_report(run: Run, episodes: int) -> dict[str, Any]:
    """Return statistics of fresh episodes: over all seeds, and per seed."""
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
    """Return the distances of learned laws from the exact ones: mean over seeds, and per seed."""
    require_exact_laws(run)
    discount = run.config.discount
    seeds = {
        str(seed): summarise(distances(run.agent, learned, discount), discount)
        | {"crossing_rate": crossing_rate(run.agent, learned)}
        for seed, learned in run.learned.items()
    }
    keys = next(iter(seeds.values()))
    mean = {key: float(np.mean([seed[key] for seed in seeds.values()])) for key in keys}
    return {**mean, "step": run.step, "seeds": run.with_steps(seeds)}


def require_exact_laws(run: Run) -> None:
    """Raise unless the exact laws of the run's environment are known."""
    if run.config.env != EXACT_ENV:
        raise UmdqnError(f"exact laws are known for {EXACT_ENV} only, not for {run.config.env!r}")
