"""Exact laws beside the learned ones, where the environment's are known."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import numpy as np

from umdqn.analysis.accuracy import stacked, truth
from umdqn.analysis.dynamic_programming import exact_laws
from umdqn.analysis.reports import is_grid_world
from umdqn.analysis.tabular import greedy_policy
from umdqn.analysis.tabulated import ExactLaws
from umdqn.envs import grid_world as grid
from umdqn.envs.catalogue import CATALOGUE
from umdqn.envs.finite import FiniteMdp
from umdqn.envs.tabular import FiniteEnvironment
from umdqn.laws.closed import GaussianMixture
from umdqn.runs.build import environment
from umdqn.viewer.loaded import Loaded
from umdqn.viewer.numbers import plain
from umdqn.viewer.views import ALPHAS, FRACTIONS, QUANTILES, told, views

# Points of a tabulated law that are drawn.
_POINTS = 241


def policy_of_truth(run: Loaded) -> str | None:
    """Return whose laws the exact ones are; None if there are none for a run."""
    if run.no_environment is not None:
        return None
    if is_grid_world(run.config):
        return "an optimal policy"
    return None if _mdp(run) is None else "the greedy policy of this checkpoint"


def exact(run: Loaded, step: int, seed: int, state: np.ndarray) -> dict[str, Any]:
    """Return the exact laws of all actions in a state, in the form of the learned ones."""
    policy = policy_of_truth(run)
    if policy is None:
        return {"laws": [], "policy": None}
    mdp = _mdp(run)
    if mdp is None:
        x, y = (int(part) for part in state)
        found = told(_grid_views(run.config.discount, grid.STATES.index((x, y))), run.actions)
        return {key: found[key] for key in ("laws", "range")} | {"policy": policy}
    number = int(np.flatnonzero((mdp.observations == state).all(axis=1))[0])
    if not mdp.visited[number]:
        return {"laws": [], "policy": policy}
    actions = greedy_policy(run.agent, run.learned(step, seed), mdp)
    laws = _finite_laws(mdp, tuple(actions.tolist()), run.config.discount)
    rows = [_row(laws, number, action, name) for action, name in enumerate(run.actions)]
    ends = [end for row in rows for end in (row["z"][0], row["z"][-1])]
    return {"laws": rows, "range": [min(ends), max(ends)], "policy": policy}


def _mdp(run: Loaded) -> FiniteMdp | None:
    """Return the tables of the environment, if it is a finite MDP that this package has."""
    listing = CATALOGUE.get(run.config.env)
    if listing is None or listing.compiled is None:
        return None
    # With the arguments and wrappers of the run, which may change its laws.
    env = environment(run.config).compiled
    return env.mdp if isinstance(env, FiniteEnvironment) else None


@lru_cache(maxsize=4)
def _grid_truth(discount: float) -> list[list[GaussianMixture]]:
    return truth(discount)


# All mixtures have the same shape, so that one program serves all states.
@lru_cache(maxsize=4)
def _stacked(discount: float) -> GaussianMixture:
    return stacked([law for row in _grid_truth(discount) for law in row])


@lru_cache(maxsize=256)
def _grid_views(discount: float, state: int) -> Any:
    count = len(grid.ACTIONS)
    rows = slice(state * count, (state + 1) * count)
    return jax.tree.map(np.asarray, _compiled(_stacked(discount)[rows]))


_compiled = jax.jit(views)


@lru_cache(maxsize=16)
def _finite_laws(mdp: FiniteMdp, actions: tuple[int, ...], discount: float) -> ExactLaws:
    return exact_laws(mdp, np.array(actions), discount)


def _row(laws: ExactLaws, state: int, action: int, name: str) -> dict[str, Any]:
    """Return one tabulated law: without a density, since its mass may lie at points."""
    pair = (state, action)
    table = laws.table[pair]
    grid_of = laws.mean[pair] + laws.offsets
    inside = np.flatnonzero((table > 0.001) & (table < 0.999))
    ends = (inside[0] - 1, inside[-1] + 1) if len(inside) else (0, len(table) - 1)
    kept = np.unique(
        np.linspace(max(ends[0], 0), min(ends[1], len(table) - 1), _POINTS).astype(int)
    )
    quantile = {tau: grid_of[np.searchsorted(table, tau - 1e-12)] for tau in QUANTILES}
    return {
        "action": name,
        "z": plain(grid_of[kept]),
        "pdf": None,
        "cdf": plain(table[kept]),
        "qf": plain(grid_of[np.minimum(np.searchsorted(table, FRACTIONS), len(table) - 1)]),
        "mean": plain(laws.mean[pair], None),
        "std": plain(laws.std[pair], None),
        "quantiles": {f"{tau:g}": plain(value, None) for tau, value in quantile.items()},
        "cvar": {f"{alpha:g}": plain(laws.cvar(alpha)[pair], None) for alpha in ALPHAS},
    }
