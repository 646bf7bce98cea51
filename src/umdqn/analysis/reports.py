"""Reports on one run, as data: what `umdqn evaluate` and `umdqn accuracy` print."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from umdqn.analysis.accuracy import crossing_rate, grid_world_accuracy
from umdqn.analysis.floor import Transitions, statistical_floor
from umdqn.analysis.tabular import finite_accuracy, greedy_policy
from umdqn.envs.catalogue import CATALOGUE
from umdqn.envs.finite import FiniteMdp
from umdqn.envs.grid_world import grid_world_mdp
from umdqn.envs.tabular import FAMILY, FiniteEnvironment
from umdqn.errors import UmdqnError
from umdqn.loops.episodes import Returns
from umdqn.runs.build import environment
from umdqn.runs.config import Config
from umdqn.runs.experience import Experience, experience
from umdqn.runs.run import Run

EXACT_ENV = "grid-world"
"""The environment whose exact laws are known in closed form."""


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
    """Return the distances of learned laws from the exact ones: mean over seeds, and per seed.

    On the grid world the exact laws are those of an optimal policy, on other finite MDPs those of
    each seed's own greedy policy; there, the distance over the state-action pairs that were tried
    is told, too. The floor is over these pairs: what the transitions of the run allow.
    """
    mdp, discount = exact_mdp(run), run.config.discount
    known, seeds = _known_experience(run), {}
    for seed, learned in run.learned.items():
        transitions = _transitions(mdp, known[seed]) if seed in known else None
        if is_grid_world(run.config):
            found, policy = grid_world_accuracy(run.agent, learned, discount), None
        else:
            found = finite_accuracy(run.agent, learned, mdp, discount, transitions)
            policy = greedy_policy(run.agent, learned, mdp)
        found["floor"] = _floor(mdp, transitions, policy, discount)
        observations = mdp.observations[mdp.visited]
        found["crossing_rate"] = crossing_rate(run.agent, learned, observations)
        seeds[str(seed)] = found
    keys = next(iter(seeds.values()))
    mean = {key: _mean([seed[key] for seed in seeds.values()]) for key in keys}
    return {**mean, "step": run.step, "seeds": run.with_steps(seeds)}


def _known_experience(run: Run) -> dict[int, Experience]:
    """Return the transitions of every seed, or nothing if they are no longer kept."""
    try:
        return experience(run)
    except UmdqnError:
        return {}


def _transitions(mdp: FiniteMdp, seen: Experience) -> Transitions:
    """Return transitions with states as numbers."""
    numbers = {row.tobytes(): state for state, row in enumerate(mdp.observations)}
    state, following = (
        np.array([numbers[row.tobytes()] for row in rows])
        for rows in (seen.observation, seen.next_observation)
    )
    return Transitions(state, seen.action, seen.reward, following, seen.terminated)


def _floor(
    mdp: FiniteMdp, transitions: Transitions | None, policy: Any, discount: float
) -> float | None:
    """Return the normalised W1 of the laws that the transitions of a seed suggest."""
    if transitions is None:
        return None
    return statistical_floor(mdp, transitions, policy, discount)["normalised_w1"]


def _mean(numbers: list[float | int | None]) -> float | None:
    """Return the mean of the numbers that exist."""
    found = [number for number in numbers if number is not None]
    return float(np.mean(found)) if found else None


def is_grid_world(config: Config) -> bool:
    """Return whether a run's environment is the grid world as it is, without wrappers."""
    return config.env == EXACT_ENV and environment(config).compiled is not None


def exact_mdp(run: Run) -> FiniteMdp:
    """Return the finite MDP that a run was trained on; raise if its environment is not one."""
    if is_grid_world(run.config):
        return grid_world_mdp()
    env = environment(run.config).compiled
    if not isinstance(env, FiniteEnvironment):
        wrapped = " in wrappers" if run.config.wrappers else ""
        known = [name for name, listing in CATALOGUE.items() if listing.family == FAMILY]
        raise UmdqnError(
            f"no exact laws for {run.config.env!r}{wrapped}: they exist for {EXACT_ENV}, "
            f"{', '.join(known)} and every FiniteMdp; umdqn calibrate works everywhere"
        )
    return env.mdp
