"""Compiled choices for batches of observations: the host loop, evaluation and policies."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
from jaxtyping import Array, Int, Shaped

from umdqn.agents.agent import Agent
from umdqn.agents.state import Learned
from umdqn.exploration.exploration import Moment
from umdqn.loops.compilation import kept_programs
from umdqn.specs import AnyArray, Key


@kept_programs
def greedy_program(agent: Agent) -> Callable[[Learned, Any], Int[AnyArray, "batch"]]:
    """Return the greedy choice for a batch of observations, compiled; or the fixed policy's."""
    policy = agent.policy
    if policy is not None:
        return lambda learned, observations: policy.choose(observations)
    return jax.jit(jax.vmap(agent.greedy, in_axes=(None, 0)))


@kept_programs
def acting_program(agent: Agent) -> Callable[[Learned, Any, Any, Key], Int[Array, "batch"]]:
    """Return the compiled exploring choice for a batch of observations."""
    policy = agent.policy
    if policy is not None:
        follow = jax.jit(partial(follow_on_batch, agent))

        def explore(
            learned: Learned, observations: Any, moment: Moment, key: Key
        ) -> Int[Array, "batch"]:
            return follow(policy.choose(observations), moment, key)

        return explore

    def act(
        learned: Learned, observations: Shaped[Array, "batch ..."], moment: Moment, key: Key
    ) -> Int[Array, "batch"]:
        return act_on_batch(agent, learned, observations, moment, key)

    return jax.jit(act)


def act_on_batch(
    agent: Agent,
    learned: Learned,
    observations: Shaped[Array, "batch ..."],
    moment: Moment,
    key: Key,
) -> Int[Array, "batch"]:
    """Choose exploring actions; every observation of the batch has randomness of its own."""
    count = observations.shape[0]
    if count == 1:
        # Not batched, so that the network is not evaluated where the action is random.
        return agent.act(learned, observations[0], moment, key)[None]
    keys = jax.random.split(key, count)
    act = jax.vmap(agent.act, in_axes=(None, 0, None, 0))
    return act(learned, observations, moment, keys)


def follow_on_batch(
    agent: Agent, actions: Int[Array, "batch"], moment: Moment, key: Key
) -> Int[Array, "batch"]:
    """Return the actions of a fixed policy, with exploring ones in place of some."""
    keys = jax.random.split(key, actions.shape[0])
    return jax.vmap(agent.follow, in_axes=(0, None, 0))(actions, moment, keys)


def random_on_batch(agent: Agent, count: int, moment: Moment, key: Key) -> Array:
    """Choose actions of the warm-up."""
    keys = jax.random.split(key, count)
    return jax.vmap(agent.random, in_axes=(None, 0))(moment, keys)
