"""Estimate the domain of returns of an environment that does not state one."""

from __future__ import annotations

import numpy as np

from umdqn.envs.entry import Entry
from umdqn.errors import UmdqnError, notice
from umdqn.specs import Domain

_STEPS = 1_000
_MARGIN = 0.1
_SEED = 0


def estimated_domain(entry: Entry, discount: float) -> Domain:
    """Estimate the domain from the rewards of random actions, as if the largest came every step.

    Generalises the paper's analysis of CartPole (appendix E): the sum of discounted rewards over
    the length of an episode, with a small margin.
    """
    low, high = _reward_bounds(entry)
    if low == high == 0:
        raise UmdqnError(
            f"the returns of {entry.spec.name} cannot be estimated: {_STEPS:,} random steps "
            "brought no reward; set --domain Z_MIN Z_MAX"
        )
    clip = entry.spec.reward_clip
    if clip is not None:
        low, high = max(low, -clip), min(high, clip)
    limit = entry.spec.time_limit
    weight = (1 - discount**limit if limit else 1.0) / (1 - discount)
    least, most = min(low, 0.0) * weight, max(high, 0.0) * weight
    margin = _MARGIN * (most - least)
    domain = Domain(float(f"{least - margin:.4g}"), float(f"{most + margin:.4g}"))
    notice(
        f"the returns of {entry.spec.name} are taken to lie in [{domain.low:g}, {domain.high:g}], "
        f"from rewards between {low:g} and {high:g} in {_STEPS:,} random steps and a discount of "
        f"{discount:g}; --domain Z_MIN Z_MAX sets it"
    )
    return domain


def _reward_bounds(entry: Entry) -> tuple[float, float]:
    env = entry.hosted(1)
    random = np.random.default_rng(_SEED)
    rewards = []
    try:
        env.reset(_SEED)
        for _ in range(_STEPS):
            step = env.step(random.integers(0, entry.spec.num_actions, 1))
            rewards.append(float(step.reward[0]))
    finally:
        env.close()
    return min(rewards), max(rewards)
