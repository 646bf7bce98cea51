"""Policies of finite MDPs: their exact means and variances, and optimal ones, by linear algebra."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from umdqn.envs.finite import FiniteMdp
from umdqn.errors import UmdqnError, check

# Two values closer than this share of the largest one count as equal.
_TIE = 1e-9
# Policy iteration ends after a few rounds; more than this would be an error here.
_MOST_ROUNDS = 1_000


class Moments(NamedTuple):
    """Mean and standard deviation of the return of states [S] and of state-action pairs [S, A]."""

    state_mean: np.ndarray
    state_std: np.ndarray
    mean: np.ndarray
    std: np.ndarray


def read_policy(mdp: FiniteMdp, policy: Any) -> np.ndarray:
    """Return probabilities [S, A] of a policy given as such, or as an array [S] of actions."""
    shape = (mdp.num_states, mdp.num_actions)
    allowed = f"actions of shape {shape[:1]}, or probabilities of shape {shape}"
    try:
        found = np.asarray(policy, np.float64)
    except (TypeError, ValueError) as error:
        raise UmdqnError(f"policy must be an array: {allowed}") from error
    if found.shape == shape[:1]:
        inside = bool(np.all((found >= 0) & (found < shape[1]) & (found == np.floor(found))))
        check(inside, "policy", found.tolist(), f"actions from 0 to {shape[1] - 1}")
        return np.eye(shape[1])[found.astype(np.int64)]
    check(found.shape == shape, "policy", found.shape, allowed)
    good = bool(np.all(np.isfinite(found) & (found >= 0)))
    check(good, "policy", "a negative probability or NaN", "probabilities at least 0")
    sums = found.sum(axis=1)
    check(bool(np.all(np.abs(sums - 1) < 1e-6)), "policy", sums.tolist(), "rows must sum to 1")
    return found / sums[:, None]


def read_discount(mdp: FiniteMdp, discount: float | None) -> float:
    """Return the discount, by default that of the MDP."""
    found = mdp.discount if discount is None else discount
    check(0 <= found < 1, "discount", found, "from 0 to below 1")
    return float(found)


def continuation(mdp: FiniteMdp) -> np.ndarray:
    """Return the probability of going on, by next state: [S, A, S]."""
    found = np.zeros((mdp.num_states, mdp.num_actions, mdp.num_states))
    states, actions, _ = np.indices(mdp.probability.shape)
    alive = mdp.probability * ~np.asarray(mdp.terminated)
    np.add.at(found, (states, actions, mdp.next_state), alive)
    return found


def accumulated(chain: np.ndarray, per_step: np.ndarray, weight: float) -> np.ndarray:
    """Return the expected sum of a quantity along a chain: x = per_step + weight chain x."""
    return np.linalg.solve(np.eye(len(chain)) - weight * chain, per_step)


def moments(mdp: FiniteMdp, policy: np.ndarray, discount: float) -> Moments:
    """Return mean and standard deviation of the return, to float precision.

    `V = r + discount P V`, and by the law of total variance
    `var(s, a) = E[std^2 + (r + discount V(s') - Q(s, a))^2 + discount^2 var(s')]`.
    """
    moves = continuation(mdp)
    chain = np.einsum("sa,sat->st", policy, moves)
    rewards = np.sum(mdp.probability * mdp.reward, axis=2)
    state_mean = accumulated(chain, np.sum(policy * rewards, axis=1), discount)
    mean = rewards + discount * moves @ state_mean
    weight = np.where(mdp.terminated, 0.0, discount)
    surprise = mdp.reward + weight * state_mean[mdp.next_state] - mean[:, :, None]
    noise = np.sum(mdp.probability * (np.asarray(mdp.reward_std) ** 2 + surprise**2), axis=2)
    choice = np.sum(policy * (noise + (mean - state_mean[:, None]) ** 2), axis=1)
    variance = accumulated(chain, choice, discount**2)
    pair_variance = noise + discount**2 * moves @ variance
    # What is left of rounding errors is no spread.
    least = (1e-12 * np.abs(mean).max()) ** 2
    stds = (np.sqrt(np.where(v > least, v, 0.0)) for v in (variance, pair_variance))
    state_std, std = stds
    return Moments(state_mean, state_std, mean, std)


def optimal_values(mdp: FiniteMdp, discount: float | None = None) -> np.ndarray:
    """Return Q*(s, a) [S, A] without a time limit, by policy iteration."""
    discount = read_discount(mdp, discount)
    moves, states = continuation(mdp), np.arange(mdp.num_states)
    rewards = np.sum(mdp.probability * mdp.reward, axis=2)
    actions = rewards.argmax(axis=1)
    for _ in range(_MOST_ROUNDS):
        values = accumulated(moves[states, actions], rewards[states, actions], discount)
        pairs = rewards + discount * moves @ values
        # Keeps an action unless another is better, so that ties cannot make it cycle.
        better = pairs.max(axis=1) > pairs[states, actions] + _TIE * np.abs(pairs).max()
        if not better.any():
            return pairs
        actions = np.where(better, pairs.argmax(axis=1), actions)
    raise UmdqnError(f"policy iteration did not end on {mdp!r}")


def optimal_actions(mdp: FiniteMdp, discount: float | None = None) -> np.ndarray:
    """Return which actions are optimal in each state [S, A]; several on a tie."""
    values = optimal_values(mdp, discount)
    best = values.max(axis=1, keepdims=True)
    return values >= best - 10 * _TIE * np.abs(values).max()


def optimal_policy(mdp: FiniteMdp, discount: float | None = None) -> np.ndarray:
    """Return an optimal policy [S, A]: the first of the optimal actions of every state."""
    return np.eye(mdp.num_actions)[optimal_actions(mdp, discount).argmax(axis=1)]
