"""Evaluation: whole episodes of a nearly greedy policy, on environments of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from umdqn.agents import Agent
from umdqn.envs import Environment, HostEnv
from umdqn.types import AnyArray, Key

_BATCH = 256


class Returns(NamedTuple):
    """Returns of episodes, from raw rewards."""

    undiscounted: Float[AnyArray, "episodes"]
    discounted: Float[AnyArray, "episodes"]


@partial(jax.jit, static_argnames=("agent", "env", "discount", "episodes", "epsilon"))
def evaluate(
    agent: Agent,
    env: Environment,
    discount: float,
    params: PyTree,
    key: Key,
    episodes: int,
    epsilon: float,
) -> Returns:
    """Play `episodes` episodes to their end or time limit."""
    limit = env.time_limit

    def episode(key: Key) -> Returns:
        reset_key, run_key = jax.random.split(key)

        def running(carry: tuple[PyTree, Bool[Array, ""], Int[Array, ""], Returns]) -> Array:
            _, ended, elapsed, _ = carry
            return ~ended & (elapsed < limit)

        def step(
            carry: tuple[PyTree, Bool[Array, ""], Int[Array, ""], Returns],
        ) -> tuple[PyTree, Bool[Array, ""], Int[Array, ""], Returns]:
            state, _, elapsed, returns = carry
            act_key, env_key = jax.random.split(jax.random.fold_in(run_key, elapsed))
            action = agent.act(params, env.observe(state), epsilon, act_key)
            state, outcome = env.step(state, action, env_key)
            returns = Returns(
                returns.undiscounted + outcome.reward,
                returns.discounted + discount**elapsed * outcome.reward,
            )
            return state, outcome.terminated, elapsed + 1, returns

        zeros = Returns(jnp.float32(0), jnp.float32(0))
        start = (env.reset(reset_key), jnp.bool_(False), jnp.int32(0), zeros)
        return jax.lax.while_loop(running, step, start)[-1]

    # In batches, so that any number of episodes fits in memory.
    return jax.lax.map(episode, jax.random.split(key, episodes), batch_size=_BATCH)


def evaluate_hosted(
    act: Callable[[np.ndarray], np.ndarray],
    env: HostEnv,
    discount: float,
    seed: int,
    episodes: int,
    epsilon: float,
    limit: int | None,
) -> Returns:
    """Play `episodes` episodes on the copies of an environment that runs in Python.

    Every copy plays its share, however long its episodes are: to take the first that end would
    prefer short ones.
    """
    most = np.iinfo(np.int64).max if limit is None else limit
    random = np.random.default_rng(seed)
    shares = np.full(env.copies, episodes // env.copies)
    shares[: episodes % env.copies] += 1
    undiscounted, discounted = np.zeros(env.copies), np.zeros(env.copies)
    weight, elapsed = np.ones(env.copies), np.zeros(env.copies, np.int64)
    finished: list[tuple[float, float]] = []
    observation = env.reset(seed)
    while shares.any():
        actions = np.array(act(observation))
        explores = random.random(env.copies) < epsilon
        actions[explores] = random.integers(0, env.spec.num_actions, int(explores.sum()))
        step = env.step(actions)
        undiscounted += step.reward
        discounted += weight * step.reward
        weight *= discount
        elapsed += 1
        over = step.terminated | step.truncated | (elapsed >= most)
        for i in np.flatnonzero(over).tolist():
            if shares[i]:
                finished.append((undiscounted[i], discounted[i]))
                shares[i] -= 1
            undiscounted[i], discounted[i], weight[i], elapsed[i] = 0.0, 0.0, 1.0, 0
            if not (step.terminated[i] or step.truncated[i]):
                step.following[i] = env.restart(i)
        observation = step.following
    totals = np.array(finished, np.float32)
    return Returns(totals[:, 0], totals[:, 1])
