"""How far learned laws are from the exact ones: the number that the paper's conclusions ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from umdqn.agents import Agent
from umdqn.analysis.exact import exact_laws, optimal_actions, optimal_policy
from umdqn.envs import grid_world as grid
from umdqn.laws import GaussianMixture, Law, midpoints
from umdqn.metrics import Wasserstein

# Wide enough for the tails of the learned laws, fine enough for the narrowest exact ones (0.1).
_GRID_MARGIN = 1.0
_GRID_POINTS = 6_001
_WORST = 0.1
_CROSSING_FRACTIONS = 200


FIGURE_STATE = (2, 6)
FIGURE_ACTION = 0
"""State and action (RIGHT) of the paper's figures, whose law has several modes."""


class Views(NamedTuple):
    """What is compared of a law; of many laws, on leading axes [states, actions]."""

    cdf: Float[Array, "*laws points"]
    mean: Float[Array, "*laws"]
    std: Float[Array, "*laws"]
    cvar: Float[Array, "*laws"]
    """Mean of the worst tenth."""


class Distances(NamedTuple):
    """Distances between learned and exact laws, one of each for every state and action."""

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
    means: np.ndarray
    """Learned means."""


def distances(agent: Agent, params: PyTree, discount: float) -> Distances:
    """Distances over all 47 x 4 state-action pairs of the grid world."""
    # One reward of at most 1, and six deviations of the noise of all steps.
    bound = 1.0 + 6 * grid.REWARD_STD / (1 - discount**2) ** 0.5
    low = min(agent.domain.low, -bound) - _GRID_MARGIN
    high = max(agent.domain.high, bound) + _GRID_MARGIN

    def views(law: Law) -> Views:
        return _views(law, jnp.linspace(low, high, _GRID_POINTS))

    learned = jax.tree.map(np.asarray, over_all_laws(agent, params, views))
    return compare(learned, _true_views(discount, low, high), (high - low) / (_GRID_POINTS - 1))


def crossing_rate(agent: Agent, params: PyTree) -> float:
    """Share of neighbouring quantiles that fall where they should rise, as regression left them.

    At the law's own fractions, or at 200; 0 where no quantiles are regressed.
    """

    def rate(law: Law) -> Array:
        _, quantiles = law.regressed(midpoints(_CROSSING_FRACTIONS))
        return jnp.mean(jnp.diff(quantiles) < 0)

    if not isinstance(agent.metric, Wasserstein):
        return 0.0
    return float(jnp.mean(over_all_laws(agent, params, rate)))


def compare(learned: Views, exact: Views, spacing: float) -> Distances:
    """Distances of laws whose CDFs are known on an even grid."""
    gap = np.abs(learned.cdf - exact.cdf)
    return Distances(
        w1=np.trapezoid(gap, dx=spacing, axis=-1),
        cramer=np.sqrt(np.trapezoid(gap**2, dx=spacing, axis=-1)),
        ks=gap.max(axis=-1),
        mean_error=np.abs(learned.mean - exact.mean),
        std_error=np.abs(learned.std - exact.std),
        cvar_error=np.abs(learned.cvar - exact.cvar),
        means=np.asarray(learned.mean),
    )


def _views(law: Law, z: Float[Array, "points"]) -> Views:
    return Views(law.cdf(z), law.mean, law.std, law.cvar(_WORST))


def over_all_laws(agent: Agent, params: PyTree, view: Callable[[Law], PyTree]) -> PyTree:
    """A function of every law of the grid world, on axes [states, actions]."""
    return _for_all_laws(agent, view)(params)


def optimal_choices(agent: Agent, all_params: Iterable[PyTree], discount: float) -> list[int]:
    """In how many of the 47 states each of some agents of a kind would act optimally."""
    means_of = _for_all_laws(agent, lambda law: law.mean)
    means = [np.asarray(means_of(params)) for params in all_params]
    return [_count_optimal(mean, discount) for mean in means]


def _count_optimal(means: np.ndarray, discount: float) -> int:
    chosen = means.argmax(axis=1)
    return int(optimal_actions(discount)[np.arange(len(chosen)), chosen].sum())


def _for_all_laws(agent: Agent, view: Callable[[Law], PyTree]) -> Callable[[PyTree], PyTree]:

    @jax.jit
    def run(params: PyTree, observations: Float[Array, "states 2"]) -> PyTree:
        network = agent.network(params)

        def of_state(observation: Float[Array, "2"]) -> PyTree:
            def of_action(action: Int[Array, ""]) -> PyTree:
                return view(network.law(observation, action))

            return jax.vmap(of_action)(jnp.arange(agent.spec.num_actions))

        # One state at a time: a step function on a fine grid takes much memory.
        return jax.lax.map(of_state, observations)

    return lambda params: run(params, jnp.asarray(np.array(grid.STATES), jnp.float32))


def truth(discount: float) -> list[list[GaussianMixture]]:
    """The exact laws of an optimal policy, whose episodes end only at the target or the trap."""
    return exact_laws(optimal_policy(discount), discount)


@cache
def _true_views(discount: float, low: float, high: float) -> Views:
    z = jnp.linspace(low, high, _GRID_POINTS)
    laws = stacked([law for row in truth(discount) for law in row])
    views = jax.jit(lambda laws: jax.lax.map(lambda law: _views(law, z), laws))(laws)
    shape = (len(grid.STATES), len(grid.ACTIONS))
    return jax.tree.map(lambda leaf: np.asarray(leaf).reshape(shape + leaf.shape[1:]), views)


def stacked(laws: list[GaussianMixture]) -> GaussianMixture:
    """Mixtures on a leading axis, those with fewer components filled up with weight 0."""
    most = max(law.weights.shape[0] for law in laws)

    def filled(values: Array, with_: Array | float) -> np.ndarray:
        filler = np.full(most - len(values), with_, np.float32)
        return np.concatenate([np.asarray(values), filler])

    parts = [
        (filled(law.weights, 0.0), filled(law.means, law.means[0]), filled(law.stds, law.stds[0]))
        for law in laws
    ]
    return GaussianMixture(*(jnp.asarray(np.stack(part)) for part in zip(*parts, strict=True)))


def summarise(distances: Distances, discount: float) -> dict[str, float]:
    """The numbers of `umdqn accuracy`, for one seed."""
    greedy = distances.means.argmax(axis=1)
    states = np.arange(len(greedy))
    return {
        "w1": float(distances.w1.mean()),
        "w1_max": float(distances.w1.max()),
        "cramer": float(distances.cramer.mean()),
        "ks": float(distances.ks.mean()),
        "mean_error": float(distances.mean_error.mean()),
        "std_error": float(distances.std_error.mean()),
        "cvar_error": float(distances.cvar_error.mean()),
        "w1_greedy": float(distances.w1[states, greedy].mean()),
        "w1_figure": float(distances.w1[grid.STATES.index(FIGURE_STATE), FIGURE_ACTION]),
        "optimal_actions": _count_optimal(distances.means, discount),
    }
