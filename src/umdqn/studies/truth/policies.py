"""The policies whose laws the study learns: one action per state."""

from __future__ import annotations

import numpy as np

from umdqn.analysis.planning import optimal_policy
from umdqn.envs.catalogue import find
from umdqn.envs.tabular import FiniteEnvironment

DISCOUNT = 0.99


def _optimal(name: str) -> np.ndarray:
    env = find(name).compiled
    assert isinstance(env, FiniteEnvironment)
    return optimal_policy(env.mdp, DISCOUNT).argmax(axis=1)


FROZEN_LAKE = _optimal("FrozenLake8x8-v1")
CLIFF_WALKING = _optimal("CliffWalkingSlippery-v1")
INVENTORY = _optimal("inventory")
RANDOM_WALK = _optimal("random-walk")
