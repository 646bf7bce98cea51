"""Episodes of environments that run in Python: one way to play them and look at them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from umdqn.envs.hosted import HostEnv


class HostEpisode(NamedTuple):
    """One whole episode of a single copy."""

    observations: list[np.ndarray]
    """What was seen before each step."""
    actions: list[int]
    rewards: list[float]
    terminated: bool
    """Whether the environment ended it; else it was truncated or given up."""
    truncated: bool
    """Whether its time limit ended it."""
    final: np.ndarray
    """What was seen after the last step."""


def play_hosted(
    env: HostEnv,
    act: Callable[[np.ndarray], Any],
    seed: int,
    limit: int,
    watch: Callable[[np.ndarray], None] = lambda observation: None,
) -> Iterator[HostEpisode]:
    """Play episode after episode on one copy; each is given up after `limit` steps.

    `act` chooses for a batch of one observation. `watch` is called before each step.
    """
    observation = env.reset(seed)
    while True:
        seen: list[np.ndarray] = []
        chosen: list[int] = []
        rewards: list[float] = []
        while True:
            watch(observation[0])
            actions = np.asarray(act(observation))
            step = env.step(actions)
            seen.append(observation[0])
            chosen.append(int(actions[0]))
            rewards.append(float(step.reward[0]))
            observation = step.following
            ended = bool(step.last[0])
            if ended or len(rewards) >= limit:
                break
        if not ended:
            observation = env.restart(0)[None]
        ends = (bool(step.terminated[0]), bool(step.truncated[0]))
        yield HostEpisode(seen, chosen, rewards, *ends, step.observation[0])
