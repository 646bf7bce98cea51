"""Where the returns of an environment lie, when nobody has said so."""

from __future__ import annotations

import numpy as np

from umdqn.envs import Entry
from umdqn.types import Domain, UmdqnError, notice

_STEPS = 1_000
_MARGIN = 0.1
_SEED = 0


def estimated_domain(entry: Entry, discount: float) -> Domain:
    """From the rewards that random actions bring, as if the largest came at every step.

    The paper's analysis for CartPole (appendix E), done by the program: the sum of discounted
    rewards over the length of an episode, with a small margin.
    """
    low, high = _reward_bounds(entry)
    if low == high == 0:
        raise UmdqnError(
            f"the returns of {entry.spec.name} cannot be guessed: {_STEPS:,} random steps brought "
            "no reward; --domain Z_MIN Z_MAX sets where they lie"
        )
    clip = entry.spec.reward_clip
    if clip is not None:
        low, high = max(low, -clip), min(high, clip)
    limit = entry.spec.time_limit
    weight = (1 - discount**limit if limit else 1.0) / (1 - discount)
    least, most = min(low, 0.0) * weight, max(high, 0.0) * weight
    margin = _MARGIN * max(most - least, 1.0)
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
