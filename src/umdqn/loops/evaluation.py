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

        def step(
            carry: tuple[PyTree, Bool[Array, ""], Returns], elapsed: Int[Array, ""]
        ) -> tuple[tuple[PyTree, Bool[Array, ""], Returns], None]:
            state, running, returns = carry
            act_key, env_key = jax.random.split(jax.random.fold_in(run_key, elapsed))
            action = agent.act(params, env.observe(state), epsilon, act_key)
            state, outcome = env.step(state, action, env_key)
            reward = jnp.where(running, outcome.reward, 0.0)
            returns = Returns(
                returns.undiscounted + reward,
                returns.discounted + discount**elapsed * reward,
            )
            return (state, running & ~outcome.terminated, returns), None

        start = (env.reset(reset_key), jnp.bool_(True), Returns(jnp.float32(0), jnp.float32(0)))
        (_, _, returns), _ = jax.lax.scan(step, start, jnp.arange(env.spec.time_limit))
        return returns

    return jax.vmap(episode)(jax.random.split(key, episodes))
