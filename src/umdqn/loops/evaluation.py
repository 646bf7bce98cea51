"""Evaluation: whole episodes of a nearly greedy policy, on environments of their own."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from umdqn.agents.agent import Agent
from umdqn.agents.state import Learned
from umdqn.envs.environment import Environment
from umdqn.envs.hosted import HostEnv
from umdqn.exploration.epsilon_greedy import constant
from umdqn.exploration.exploration import Moment
from umdqn.loops.acting import acting_program
from umdqn.loops.compilation import kept_programs
from umdqn.loops.episodes import Returns, play_returns
from umdqn.specs import Key

_BATCH = 256


@kept_programs
def _program(
    agent: Agent, env: Environment, discount: float, episodes: int
) -> Callable[..., Returns]:
    def play(learned: Learned, key: Key) -> Returns:
        def one(key: Key) -> Returns:
            play_key, act_key = jax.random.split(key)

            def act(observation: Any, elapsed: Any) -> Any:
                return agent.act(learned, observation, Moment(elapsed, elapsed), act_key)

            return play_returns(env, act, play_key, discount)

        # In batches, so that any number of episodes fits in memory.
        return jax.lax.map(one, jax.random.split(key, episodes), batch_size=_BATCH)

    return jax.jit(play)


def evaluate(
    agent: Agent,
    env: Environment,
    discount: float,
    learned: Learned,
    key: Key,
    episodes: int,
    epsilon: float,
) -> Returns:
    """Play episodes on a compiled environment to their end or time limit."""
    agent = dataclasses.replace(agent, exploration=constant(epsilon))
    return _program(agent, env, discount, episodes)(learned, key)


def evaluate_hosted(
    agent: Agent,
    learned: Learned,
    env: HostEnv,
    discount: float,
    seed: int,
    episodes: int,
    epsilon: float,
    limit: int | None,
) -> Returns:
    """Play episodes on the copies of an environment that runs in Python.

    Every copy plays its share, however long its episodes are: taking the first episodes that end
    would favour short ones. Episodes are given up after `limit` steps.
    """
    act = acting_program(dataclasses.replace(agent, exploration=constant(epsilon)))
    key, steps = jax.random.key(seed), itertools.count()

    def choose(observations: np.ndarray) -> np.ndarray:
        return np.asarray(act(learned, observations, Moment.on_host(next(steps)), key))

    return _play_shares(env, choose, env.reset(seed), discount, episodes, limit)


def _play_shares(
    env: HostEnv,
    choose: Callable[[np.ndarray], np.ndarray],
    observation: np.ndarray,
    discount: float,
    episodes: int,
    limit: int | None,
) -> Returns:
    """Play until every copy has finished its share of the episodes."""
    shares = np.full(env.copies, episodes // env.copies)
    shares[: episodes % env.copies] += 1
    sums = Returns(np.zeros(env.copies), np.zeros(env.copies))
    elapsed = np.zeros(env.copies, np.int64)
    finished: list[tuple[float, float]] = []
    while shares.any():
        step = env.step(choose(observation))
        sums = sums.after(step.reward, elapsed, discount)
        elapsed += 1
        ended = step.last
        given_up = ~ended & (elapsed >= limit) if limit is not None else np.zeros_like(ended)
        for i in np.flatnonzero(ended | given_up).tolist():
            if shares[i]:
                finished.append((float(sums.undiscounted[i]), float(sums.discounted[i])))
                shares[i] -= 1
            sums.undiscounted[i], sums.discounted[i], elapsed[i] = 0.0, 0.0, 0
            if given_up[i]:
                step.following[i] = env.restart(i)
        observation = step.following
    totals = np.array(finished, np.float32)
    return Returns(totals[:, 0], totals[:, 1])
