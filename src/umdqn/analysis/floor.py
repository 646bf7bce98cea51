"""The statistical floor: how true laws can be that are learned from given transitions.

Even the exact law of the MDP that the transitions suggest differs from the truth; a learner with
the same data cannot be expected to do better.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from umdqn.analysis.accuracy import normalised
from umdqn.analysis.dynamic_programming import exact_laws
from umdqn.analysis.planning import read_policy
from umdqn.analysis.tabulated import distance
from umdqn.envs.finite import FiniteMdp
from umdqn.errors import UmdqnError, check

# Rewards of one transition with more different values than this are taken to be Gaussian.
_MOST_REWARDS = 16


class Transitions(NamedTuple):
    """What happened, as arrays of one length: states and actions are numbers."""

    state: Any
    action: Any
    reward: Any
    next_state: Any
    terminated: Any


class Empirical(NamedTuple):
    """The MDP that transitions suggest, and how often each state-action pair was seen [S, A]."""

    mdp: FiniteMdp
    visits: np.ndarray


def visits(transitions: Transitions, like: FiniteMdp) -> np.ndarray:
    """Return how often each state-action pair occurs [S, A]."""
    counts = np.zeros((like.num_states, like.num_actions), np.int64)
    np.add.at(counts, (transitions.state, transitions.action), 1)
    return counts


def empirical_mdp(transitions: Transitions, like: FiniteMdp) -> Empirical:
    """Return the MDP whose probabilities are the frequencies of transitions.

    Rewards of the same state, action, next state and end are kept as they were seen if they have
    few different values; otherwise they become a Gaussian with their mean and standard deviation.
    A pair that was never seen ends the episode without reward.
    """
    state, action, reward, following, ended = _read(transitions, like)
    shape = (like.num_states, like.num_actions)
    counts = visits(transitions, like)
    keys = np.stack([state, action, following, ended.astype(np.int64)], axis=1)
    rows: list[list[list[tuple[float, float, float, float, float]]]]
    rows = [[[] for _ in range(shape[1])] for _ in range(shape[0])]
    groups, member = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(member.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(member.reshape(-1)))
    for (s, a, t, end), some in zip(groups, np.split(reward[order], ends[:-1]), strict=True):
        for value, std, count in _rewards(some):
            rows[s][a].append((count / counts[s, a], t, value, std, end))
    for s, a in np.argwhere(counts == 0):
        rows[s][a].append((1.0, s, 0.0, 0.0, 1.0))
    most = max(len(outcomes) for row in rows for outcomes in row)
    padding = (0.0,) * 5
    cells = np.array([[[*o, *[padding] * (most - len(o))] for o in row] for row in rows])
    probability, next_state, mean, std, terminated = np.moveaxis(cells, -1, 0)
    mdp = FiniteMdp(
        probability,
        next_state,
        mean,
        std,
        terminated > 0,
        start=like.start,
        name=f"{like.name}, estimated",
        action_names=like.action_names,
        discount=like.discount,
        time_limit=like.time_limit,
    )
    return Empirical(mdp, counts)


def statistical_floor(
    mdp: FiniteMdp,
    transitions: Transitions,
    policy: Any = None,
    discount: float | None = None,
    points: int | None = None,
) -> dict[str, Any]:
    """Return how far the exact laws of the empirical MDP are from the truth, for one policy.

    `policy` is by default an optimal one of the true MDP. Pairs of states that an agent can act in
    are averaged, without those that were never seen: `unseen` is their number. `truth_error` bounds
    the error of `w1` that the computation of both laws adds.
    """
    truth = exact_laws(mdp, policy, discount, points)
    found = empirical_mdp(transitions, mdp)
    chosen = truth.policy if policy is None else read_policy(mdp, policy)
    estimate = exact_laws(found.mdp, chosen, truth.discount, points)
    visited = np.broadcast_to(mdp.visited[:, None], truth.mean.shape)
    scored = visited & (found.visits > 0)
    if not scored.any():
        raise UmdqnError("no transition starts in a state that an agent can act in")
    w1 = distance(estimate, truth)[scored]
    return {
        "w1": float(w1.mean()),
        "normalised_w1": normalised(w1, truth.std[visited]),
        "mean_error": float(np.abs(estimate.mean - truth.mean)[scored].mean()),
        "truth_error": float((truth.error + estimate.error)[scored].mean()),
        "transitions": int(found.visits.sum()),
        "unseen": int((visited & (found.visits == 0)).sum()),
    }


def _read(
    transitions: Transitions, like: FiniteMdp
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    state, action, following = (
        np.asarray(part) for part in (transitions.state, transitions.action, transitions.next_state)
    )
    reward, ended = np.asarray(transitions.reward, np.float64), np.asarray(transitions.terminated)
    length = (len(np.atleast_1d(state)),)
    limits = {"state": like.num_states, "action": like.num_actions, "next_state": like.num_states}
    for (name, most), part in zip(limits.items(), (state, action, following), strict=True):
        check(part.shape == length, name, part.shape, f"shape {length}, one entry per transition")
        good = part.dtype.kind in "iu" and bool(np.all((part >= 0) & (part < most)))
        check(good, name, "something else", f"whole numbers from 0 to {most - 1}")
    for name, part in (("reward", reward), ("terminated", ended)):
        check(part.shape == length, name, part.shape, f"shape {length}, one entry per transition")
    check(bool(np.isfinite(reward).all()), "reward", "NaN or infinity", "finite numbers")
    return state, action, reward, following, ended.astype(bool)


def _rewards(seen: np.ndarray) -> list[tuple[float, float, int]]:
    """Return value, standard deviation and count of the different rewards of one transition."""
    values, counts = np.unique(seen, return_counts=True)
    if len(values) <= _MOST_REWARDS and len(values) < max(2, len(seen) / 2):
        return [(float(v), 0.0, int(n)) for v, n in zip(values, counts, strict=True)]
    return [(float(seen.mean()), float(seen.std()), len(seen))]
