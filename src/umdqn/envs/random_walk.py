"""A random walk on a chain: a long horizon, noisy rewards, no end.

Importing this module registers it with Gymnasium.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import gymnasium
import numpy as np

from umdqn.envs.entry import Entry, Resolver, list_compiled
from umdqn.envs.finite import FiniteMdp
from umdqn.envs.setup import Setup
from umdqn.envs.tabular import FiniteEnvironment, TabularEnv, finite_entry, register

NAME = "random-walk"
ID = "umdqn/RandomWalk-v0"

LENGTH = 11
DRIFT = 0.6
"""Probability of a step in the direction of the action; otherwise it goes the other way."""
LEFT_REWARD, RIGHT_REWARD = 1.0, 2.0
"""Mean reward for arriving at, or staying at, either end; 0 elsewhere."""
REWARD_STD = 0.5
TIME_LIMIT = 200


def random_walk_mdp() -> FiniteMdp:
    """Return the tables: states are positions; the ends hold what would step over them."""
    position = np.arange(LENGTH)
    steps = np.array([[-1, 1], [1, -1]])
    arrived = np.clip(position[:, None, None] + steps, 0, LENGTH - 1)
    reward = LEFT_REWARD * (arrived == 0) + RIGHT_REWARD * (arrived == LENGTH - 1)
    return FiniteMdp(
        probability=np.broadcast_to([DRIFT, 1 - DRIFT], arrived.shape),
        next_state=arrived,
        reward=reward,
        reward_std=REWARD_STD,
        name=NAME,
        action_names=("LEFT", "RIGHT"),
        time_limit=TIME_LIMIT,
    )


class RandomWalkEnv(TabularEnv):
    """The random walk for Gymnasium; `gymnasium.make` truncates episodes."""

    def __init__(self, render_mode: str | None = None):
        super().__init__(random_walk_mdp(), render_mode)


class RandomWalks(Resolver):
    """The name `random-walk`."""

    compiled = FiniteEnvironment(random_walk_mdp())
    listings: ClassVar = {NAME: list_compiled(compiled)}

    def resolve(self, name: str, setup: Setup) -> Entry | None:
        if name not in self.listings:
            return None
        return finite_entry(self.compiled, setup, partial(gymnasium.make, ID))


register(ID, RandomWalkEnv, TIME_LIMIT)
