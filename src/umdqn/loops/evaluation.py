"""Evaluation: whole episodes of a nearly greedy policy, on environments of their own."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from umdqn.agents import Agent
from umdqn.envs import Environment
from umdqn.types import Key

_BATCH = 256


class Returns(NamedTuple):
    """Returns of episodes, from raw rewards."""

    undiscounted: Float[Array, "episodes"]
    discounted: Float[Array, "episodes"]


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

    def episode(key: Key) -> Returns:
        reset_key, run_key = jax.random.split(key)

        def running(carry: tuple[PyTree, Bool[Array, ""], Int[Array, ""], Returns]) -> Array:
            _, ended, elapsed, _ = carry
            return ~ended & (elapsed < env.spec.time_limit)

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
