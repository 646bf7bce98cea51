"""Distances of learned laws from the exact laws of the grid world."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from umdqn.agents.agent import Agent
from umdqn.agents.state import Learned
from umdqn.analysis.exact import exact_laws, optimal_actions, optimal_policy
from umdqn.envs import grid_world as grid
from umdqn.laws.atoms import midpoints
from umdqn.laws.closed import GaussianMixture
from umdqn.laws.law import Law
from umdqn.loops.compilation import kept_programs

# Wide enough for tails of learned laws, fine enough for the narrowest exact laws (0.1).
_GRID_MARGIN = 1.0
_GRID_POINTS = 6_001
_CROSSING_FRACTIONS = 200
# Exact mixtures are evaluated in single precision.
_TRUTH_ERROR = 1e-6

WORST = 0.1
"""Share of returns whose mean is compared, the worst ones."""

FIGURE_STATE = (2, 6)
FIGURE_ACTION = 0
"""State and action (RIGHT) of the paper's figures, whose law has several modes."""


Numbers = dict[str, float | int | None]
"""Results by name; None where a number does not exist."""


class Views(NamedTuple):
    """The views of laws that are compared, on leading axes [states, actions]."""

    cdf: Float[Array, "*laws points"]
    mean: Float[Array, "*laws"]
    std: Float[Array, "*laws"]
    cvar: Float[Array, "*laws"]
    """Mean of the worst tenth."""


class LearnedViews(NamedTuple):
    """The views of learned laws, and what the agent's decision rule makes of them."""

    views: Views
    scores: Float[Array, "*laws"]


class Distances(NamedTuple):
    """Distances between learned and exact laws: arrays [states, actions]."""

    w1: np.ndarray
    """Wasserstein-1: `int |F - G| dz`."""
    cramer: np.ndarray
    """Cramer: `(int (F - G)^2 dz)^(1/2)`."""
    ks: np.ndarray
    """Kolmogorov-Smirnov: `max |F - G|`."""
    mean_error: np.ndarray
    std_error: np.ndarray
    cvar_error: np.ndarray
    """Absolute errors of the mean, the standard deviation, and the mean of the worst tenth."""
    scores: np.ndarray
    """What the agent's greedy choice compares."""


def distances(agent: Agent, learned: Learned, discount: float) -> Distances:
    """Return the distances of all 47 x 4 state-action pairs of the grid world."""
    low, high = _range(agent, discount)
    program = _views_program(agent, low, high)
    found = jax.tree.map(np.asarray, program(learned, _observations()))
    exact = _true_views(discount, low, high)
    return compare(found.views, exact, (high - low) / (_GRID_POINTS - 1), found.scores)


def _range(agent: Agent, discount: float) -> tuple[float, float]:
    """Return the ends of the grid on which CDFs are compared."""
    # One reward of at most 1, plus six standard deviations of the noise of all steps.
    bound = 1.0 + 6 * grid.REWARD_STD / (1 - discount**2) ** 0.5
    ends = (-bound, bound) if agent.domain is None else (agent.domain.low, agent.domain.high)
    return min(ends[0], -bound) - _GRID_MARGIN, max(ends[1], bound) + _GRID_MARGIN


def crossing_rate(agent: Agent, learned: Learned, observations: np.ndarray) -> float:
    """Return the share of neighbouring quantiles that are in the wrong order as trained.

    At the law's own fractions, or at 200; 0 unless the metric trains quantiles.
    """
    if "quantile" not in agent.metric.comparisons() or "quantile" not in agent.representation.gives:
        return 0.0
    return float(jnp.mean(_crossing_program(agent)(learned, jnp.asarray(observations))))


def compare(learned: Views, exact: Views, spacing: float, scores: np.ndarray) -> Distances:
    """Return the distances of laws whose CDFs are known on an even grid."""
    gap = np.abs(learned.cdf - exact.cdf)
    return Distances(
        w1=np.trapezoid(gap, dx=spacing, axis=-1),
        cramer=np.sqrt(np.trapezoid(gap**2, dx=spacing, axis=-1)),
        ks=gap.max(axis=-1),
        mean_error=np.abs(learned.mean - exact.mean),
        std_error=np.abs(learned.std - exact.std),
        cvar_error=np.abs(learned.cvar - exact.cvar),
        scores=scores,
    )


def _views(laws: Law, z: Float[Array, "points"]) -> Views:
    return Views(laws.cdf(z), laws.mean, laws.std, laws.cvar(WORST))


@kept_programs
def _views_program(
    agent: Agent, low: float, high: float
) -> Callable[[Learned, Array], LearnedViews]:
    def views(laws: Law) -> LearnedViews:
        z = jnp.linspace(low, high, _GRID_POINTS)
        return LearnedViews(_views(laws, z), agent.scores(laws))

    return _for_all_laws(agent, views)


@kept_programs
def _crossing_program(agent: Agent) -> Callable[[Learned, Array], Array]:
    def rate(law: Any) -> Array:
        _, quantiles = law.claims(midpoints(_CROSSING_FRACTIONS))
        return jnp.mean(jnp.diff(quantiles) < 0)

    return _for_all_laws(agent, jax.vmap(rate))


@kept_programs
def _scores_program(agent: Agent) -> Callable[[Learned, Array], Array]:
    return _for_all_laws(agent, agent.scores)


def optimal_choices(agent: Agent, learned: Iterable[Learned], discount: float) -> list[int]:
    """Return, for each of several seeds or checkpoints, in how many states it acts optimally."""
    scores = [np.asarray(_scores_program(agent)(one, _observations())) for one in learned]
    return [_count_optimal(each, discount) for each in scores]


def _count_optimal(scores: np.ndarray, discount: float) -> int:
    """Count the states whose greedy choice has the largest expected return."""
    chosen = scores.argmax(axis=1)
    return int(optimal_actions(discount)[np.arange(len(chosen)), chosen].sum())


def _for_all_laws(
    agent: Agent, view: Callable[[Any], PyTree]
) -> Callable[[Learned, Array], PyTree]:
    """Compile a function of the laws of all actions, of every state: leading axis [states]."""

    @jax.jit
    def run(learned: Learned, observations: Array) -> PyTree:
        # One state at a time: step functions on a fine grid take much memory.
        return jax.lax.map(lambda seen: view(agent.laws(learned, seen)), observations)

    return run


def _observations() -> Array:
    return jnp.asarray(np.array(grid.STATES), jnp.float32)


def truth(discount: float) -> list[list[GaussianMixture]]:
    """Return the exact laws under an optimal policy, without a time limit: [states][actions]."""
    return exact_laws(optimal_policy(discount), discount)


@lru_cache(maxsize=8)
def _true_views(discount: float, low: float, high: float) -> Views:
    z = jnp.linspace(low, high, _GRID_POINTS)
    laws = stacked([law for row in truth(discount) for law in row])
    views = jax.jit(lambda laws: jax.lax.map(lambda law: _views(law, z), laws))(laws)
    shape = (len(grid.STATES), len(grid.ACTIONS))
    return jax.tree.map(lambda leaf: np.asarray(leaf).reshape(shape + leaf.shape[1:]), views)


def stacked(laws: list[GaussianMixture]) -> GaussianMixture:
    """Stack mixtures on a leading axis; missing components get weight 0."""
    most = max(law.weights.shape[0] for law in laws)

    def filled(values: Array, with_: Array | float) -> np.ndarray:
        filler = np.full(most - len(values), with_, np.float32)
        return np.concatenate([np.asarray(values), filler])

    parts = [
        (filled(law.weights, 0.0), filled(law.means, law.means[0]), filled(law.stds, law.stds[0]))
        for law in laws
    ]
    return GaussianMixture(*(jnp.asarray(np.stack(part)) for part in zip(*parts, strict=True)))


def grid_world_accuracy(agent: Agent, learned: Learned, discount: float) -> Numbers:
    """Return the numbers of `umdqn accuracy` on the grid world, for one seed.

    Laws are compared with those of an optimal policy.
    """
    found = distances(agent, learned, discount)
    stds = _true_views(discount, *_range(agent, discount)).std
    return summarise(found, np.asarray(stds), _TRUTH_ERROR) | {
        "w1_figure": float(found.w1[grid.STATES.index(FIGURE_STATE), FIGURE_ACTION]),
        "optimal_actions": _count_optimal(found.scores, discount),
        "states": len(grid.STATES),
    }


def summarise(distances: Distances, stds: np.ndarray, truth_error: float) -> Numbers:
    """Return means over state-action pairs, given the standard deviations of the exact laws."""
    greedy = distances.scores.argmax(axis=1)
    states = np.arange(len(greedy))
    return {
        "w1": float(distances.w1.mean()),
        "normalised_w1": normalised(distances.w1, stds),
        "w1_max": float(distances.w1.max()),
        "cramer": float(distances.cramer.mean()),
        "ks": float(distances.ks.mean()),
        "mean_error": float(distances.mean_error.mean()),
        "std_error": float(distances.std_error.mean()),
        "cvar_error": float(distances.cvar_error.mean()),
        "w1_greedy": float(distances.w1[states, greedy].mean()),
        "truth_error": truth_error,
    }


def normalised(w1: np.ndarray, stds: np.ndarray) -> float | None:
    """Return the mean distance in units of the mean standard deviation of the exact laws.

    Laws that are points have no spread to divide by: None then.
    """
    spread = float(stds.mean())
    return float(w1.mean()) / spread if spread > 0 else None
