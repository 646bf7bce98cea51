"""Policies: what a trained agent does, and how well it does it."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Int, PyTree, Shaped

from umdqn.agents import Agent
from umdqn.loops import Returns, evaluate, evaluate_hosted
from umdqn.runs.config import Config
from umdqn.types import EnvSpec, UmdqnError, check

# Evaluation draws its randomness from here, so that it never meets that of training.
_EVALUATION_STREAM = 2**31 - 1
# Copies of an environment that evaluation plays at once.
_COPIES = 10


@partial(jax.jit, static_argnames="agent")
def _greedy(
    agent: Agent, params: PyTree, observations: Shaped[Array, "batch ..."]
) -> Int[Array, "batch"]:
    return jax.vmap(agent.greedy, in_axes=(None, 0))(params, observations)


@dataclasses.dataclass
class Policy:
    """The greedy policy of one seed, with the signature of Stable-Baselines3's `predict`."""

    agent: Agent
    params: PyTree
    epsilon: float = 0.0
    """Share of random actions when not deterministic."""
    seed: int = 0

    def __post_init__(self) -> None:
        self._random = np.random.default_rng([self.seed, _EVALUATION_STREAM])

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[np.ndarray, None]:
        """Actions for one observation or for a batch of them."""
        seen = self.agent.spec.observation
        observation = np.asarray(observation, seen.dtype)
        single = observation.shape == seen.shape
        good = single or observation.shape[1:] == seen.shape
        check(good, "observation", observation.shape, f"shape {seen.shape}, or a batch of such")
        batch = observation[None] if single else observation
        actions = np.array(_greedy(self.agent, self.params, batch), np.int64)
        if not deterministic:
            explores = self._random.random(len(actions)) < self.epsilon
            choices = self._random.integers(0, self.agent.spec.num_actions, len(actions))
            actions = np.where(explores, choices, actions)
        actions = actions + self.agent.spec.first_action
        return (actions.reshape(()) if single else actions), None


def _check_same(now: EnvSpec, then: EnvSpec) -> None:
    """Refuse an environment that is no longer what the agent was trained on."""
    for field in ("observation", "num_actions"):
        found, expected = getattr(now, field), getattr(then, field)
        if found != expected:
            raise UmdqnError(
                f"environment {then.name!r} has changed since training: {field} is {found}, was "
                f"{expected}"
            )


def evaluate_params(
    config: Config, agent: Agent, params: PyTree, seed: int, step: int, episodes: int
) -> Returns:
    """Returns of one seed's policy, on episodes that depend on seed and step only."""
    entry, epsilon = config.environment(), config.evaluation.epsilon
    if config.compiled:
        assert entry.compiled is not None
        stream = jax.random.fold_in(jax.random.key(seed), _EVALUATION_STREAM)
        key = jax.random.fold_in(stream, step)
        params = jax.device_get(params)
        returns = evaluate(agent, entry.compiled, config.discount, params, key, episodes, epsilon)
        return jax.tree.map(np.asarray, returns)
    _check_same(entry.spec, agent.spec)
    env = entry.hosted(min(episodes, _COPIES))
    sequence = np.random.SeedSequence([seed, _EVALUATION_STREAM, step])
    try:
        return evaluate_hosted(
            partial(_greedy, agent, params),
            env,
            config.discount,
            int(sequence.generate_state(1)[0]),
            episodes,
            epsilon,
            config.evaluation.limit if entry.spec.time_limit is None else None,
        )
    finally:
        env.close()
