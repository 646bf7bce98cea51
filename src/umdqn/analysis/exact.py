"""Exact laws of the grid world's returns: Gaussian mixtures by forward propagation.

The return of an episode that ends after T steps at the target or the trap (o = +1 or -1) is
`N(gamma^(T-1) o, std^2 sum_{t<T} gamma^(2t))`, so the law of Z(s, a) is a mixture over (T, o).
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np

from umdqn.envs import grid_world as grid
from umdqn.laws.closed import GaussianMixture

Policy = np.ndarray
"""Probabilities of actions: one row per state, in the order of `grid_world.STATES`."""

# Discount factors and differences of values below this count as zero.
_NEGLIGIBLE = 1e-9


def _model() -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities of the next state [S, A, S], and of trap and target [S, A, 2]."""
    index = {state: i for i, state in enumerate(grid.STATES)}
    shape = (len(grid.STATES), len(grid.ACTIONS))
    moves, ends = np.zeros((*shape, len(grid.STATES))), np.zeros((*shape, 2))
    for state, i in index.items():
        for action in range(shape[1]):
            for cell, probability in grid.arrivals(state, action).items():
                if cell in index:
                    moves[i, action, index[cell]] += probability
                else:
                    ends[i, action, int(cell == grid.TARGET)] += probability
    return moves, ends


def optimal_values(discount: float = grid.DISCOUNT) -> np.ndarray:
    """Return Q*(s, a) without a time limit, by value iteration to float precision."""
    moves, ends = _model()
    rewards = ends @ np.array([-1.0, 1.0])
    values = np.zeros_like(rewards)
    for _ in range(10_000):
        updated = rewards + discount * moves @ values.max(axis=1)
        if np.array_equal(updated, values):
            break
        values = updated
    return values


def optimal_actions(discount: float = grid.DISCOUNT) -> np.ndarray:
    """Return which actions are optimal in each state [S, A]; several on a tie."""
    values = optimal_values(discount)
    return values >= values.max(axis=1, keepdims=True) - _NEGLIGIBLE


def optimal_policy(discount: float = grid.DISCOUNT) -> Policy:
    """Return an optimal policy: the first of the optimal actions."""
    return np.eye(len(grid.ACTIONS))[optimal_actions(discount).argmax(axis=1)]


def exact_laws(
    policy: Policy, discount: float = grid.DISCOUNT, time_limit: int | None = None
) -> list[list[GaussianMixture]]:
    """Return the law of the return of every state and action, followed by `policy`.

    With `time_limit`, episodes are truncated after that many steps; without it, they run until
    they terminate.
    """
    moves, ends = _model()
    horizon = time_limit or _horizon(discount)
    variances = grid.REWARD_STD**2 * np.cumsum(discount ** (2 * np.arange(horizon)))
    step_moves = np.einsum("sa,sat->st", policy, moves)
    step_ends = np.einsum("sa,sao->so", policy, ends)
    return [
        [
            _law(
                moves[state, action],
                ends[state, action],
                step_moves,
                step_ends,
                variances,
                discount,
            )
            for action in range(len(grid.ACTIONS))
        ]
        for state in range(len(grid.STATES))
    ]


def _horizon(discount: float) -> int:
    """Return the number of steps after which rewards are negligible."""
    return 1 + math.ceil(math.log(_NEGLIGIBLE) / math.log(discount)) if discount > 0 else 1


def _law(
    occupied: np.ndarray,
    ended: np.ndarray,
    step_moves: np.ndarray,
    step_ends: np.ndarray,
    variances: np.ndarray,
    discount: float,
) -> GaussianMixture:
    """Return the mixture of one state-action pair, given the result of its first step."""
    weights, means, stds = [], [], []
    for step, variance in enumerate(variances):
        if step > 0:
            occupied, ended = occupied @ step_moves, occupied @ step_ends
        weights += list(ended)
        means += [-(discount**step), discount**step]
        stds += [np.sqrt(variance)] * 2
    # Episodes that have not ended by the horizon have received noise only.
    weights, means, stds = [*weights, occupied.sum()], [*means, 0.0], [*stds, stds[-1]]
    kept = np.array(weights) > 0
    return GaussianMixture(
        *(jnp.asarray(np.array(part)[kept], jnp.float32) for part in (weights, means, stds))
    )
