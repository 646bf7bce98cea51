"""How far learned laws are from the exact ones: the number that the paper's conclusions ask for."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from umdqn.agents import Agent
from umdqn.analysis.exact import exact_laws, optimal_actions, optimal_policy
from umdqn.envs import grid_world as grid
from umdqn.laws import GaussianMixture, Law

# Wide enough for the tails of the learned laws, fine enough for the narrowest exact ones (0.1).
_GRID_MARGIN = 1.0
_GRID_POINTS = 6_001


class Distances(NamedTuple):
    """Distances between learned and exact laws, one of each for every state and action."""

    w1: np.ndarray
    """Wasserstein-1: `int |F - G| dz`."""
    cramer: np.ndarray
    """Cramer: `(int (F - G)^2 dz)^(1/2)`."""
    ks: np.ndarray
    """Kolmogorov-Smirnov: `max |F - G|`."""
    mean_error: np.ndarray
    """Absolute error of the mean."""
    means: np.ndarray
    """Learned means."""


def distances(
    agent: Agent, params: PyTree, exact: list[list[GaussianMixture]], discount: float
) -> Distances:
    """Distances over all 47 x 4 state-action pairs of the grid world."""
    # One reward of at most 1, and six deviations of the noise of all steps.
    bound = 1.0 + 6 * grid.REWARD_STD / (1 - discount**2) ** 0.5
    low = min(agent.domain.low, -bound) - _GRID_MARGIN
    high = max(agent.domain.high, bound) + _GRID_MARGIN
    z = jnp.linspace(low, high, _GRID_POINTS)
    observations = jnp.asarray(np.array(grid.STATES), jnp.float32)
    learned, means = _views(agent, params, observations, z)
    return compare(np.asarray(learned), np.asarray(means), exact, z)


def compare(
    learned: np.ndarray,
    means: np.ndarray,
    exact: list[list[GaussianMixture]],
    z: Float[Array, "points"],
) -> Distances:
    """Distances of learned CDFs [states, actions, points] and means from exact laws."""
    gap = np.abs(learned - np.array([[np.asarray(law.cdf(z)) for law in row] for row in exact]))
    spacing = float(z[1] - z[0])
    exact_means = np.array([[float(law.mean) for law in row] for row in exact])
    return Distances(
        w1=np.trapezoid(gap, dx=spacing, axis=-1),
        cramer=np.sqrt(np.trapezoid(gap**2, dx=spacing, axis=-1)),
        ks=gap.max(axis=-1),
        mean_error=np.abs(means - exact_means),
        means=means,
    )


def _views(
    agent: Agent, params: PyTree, observations: Float[Array, "states 2"], z: Float[Array, "points"]
) -> tuple[Float[Array, "states actions points"], Float[Array, "states actions"]]:
    def view(law: Law) -> tuple[Array, Array]:
        return law.cdf(z), law.mean

    def all_actions(params: PyTree, observation: Array) -> tuple[Array, Array]:
        return jax.vmap(view)(agent.laws(params, observation))

    return jax.jit(jax.vmap(all_actions, in_axes=(None, 0)))(params, observations)


def truth(discount: float) -> list[list[GaussianMixture]]:
    """The exact laws of an optimal policy, whose episodes end only at the target or the trap."""
    return exact_laws(optimal_policy(discount), discount)


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
        "w1_greedy": float(distances.w1[states, greedy].mean()),
        "optimal_actions": int(optimal_actions(discount)[states, greedy].sum()),
    }
