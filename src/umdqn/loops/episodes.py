"""Episodes of compiled environments: one way to play them, for training, scores and calibration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped

from umdqn.envs.environment import Environment
from umdqn.envs.hosted import Stepped
from umdqn.specs import AnyArray, Key

Act = Callable[[Shaped[Array, "..."], Int[Array, ""]], Int[Array, ""]]
"""From an observation and the number of the step in its episode to an action."""


class Episode(NamedTuple):
    """An episode that is being played."""

    env: PyTree
    """The environment's state."""
    elapsed: Int[Array, ""]
    """Steps so far."""
    total: Float[Array, ""]
    """Undiscounted return so far."""


class Step(NamedTuple):
    """What a step brought."""

    observation: Shaped[Array, "..."]
    """What was seen after it."""
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]

    @property
    def last(self) -> Bool[Array, ""]:
        """Whether the episode ended."""
        return self.terminated | self.truncated


def begin(env: Environment, key: Key) -> Episode:
    """Start an episode."""
    return Episode(env.reset(key), jnp.int32(0), jnp.float32(0))


def advance(
    env: Environment, episode: Episode, action: Int[Array, ""], key: Key
) -> tuple[Episode, Step]:
    """Take one step; the time limit truncates, the environment terminates."""
    state, outcome = env.step(episode.env, action, key)
    elapsed = episode.elapsed + 1
    step = Step(env.observe(state), outcome.reward, outcome.terminated, elapsed >= env.time_limit)
    return Episode(state, elapsed, episode.total + outcome.reward), step


def bootstrap_discount(step: Step | Stepped, discount: float, truncation_terminates: bool) -> Any:
    """Return the discount of a step's transition: 0 where the return ends, in JAX or NumPy.

    At a time limit the discount stays as it is and targets bootstrap, because observations do not
    contain the time. With `truncation_terminates` it is 0 there, too.
    """
    ends = step.last if truncation_terminates else step.terminated
    return discount * (1 - ends.astype("float32"))


class Trajectory(NamedTuple):
    """A whole episode, padded to the time limit."""

    observations: Shaped[Array, "steps ..."]
    """What was seen before each step."""
    actions: Int[Array, "steps"]
    rewards: Float[Array, "steps"]
    """0 after the end."""
    running: Bool[Array, "steps"]
    """Whether the episode had not ended before the step."""
    cut: Bool[Array, ""]
    """Whether the time limit ended the episode, not the environment."""
    final: Shaped[Array, "..."]
    """What was seen after the time limit; means nothing if the episode was not cut."""


def trajectory(env: Environment, act: Act, key: Key) -> Trajectory:
    """Play one episode to its end or its time limit."""
    reset_key, run_key = jax.random.split(key)

    def step(
        carry: tuple[Episode, Bool[Array, ""]], elapsed: Int[Array, ""]
    ) -> tuple[tuple[Episode, Bool[Array, ""]], tuple[Array, ...]]:
        episode, running = carry
        observation = env.observe(episode.env)
        action = act(observation, elapsed)
        episode, found = advance(env, episode, action, jax.random.fold_in(run_key, elapsed))
        reward = jnp.where(running, found.reward, 0.0)
        return (episode, running & ~found.terminated), (observation, action, reward, running)

    start = (begin(env, reset_key), jnp.bool_(True))
    (episode, cut), played = jax.lax.scan(step, start, jnp.arange(env.time_limit))
    observations, actions, rewards, running = played
    final = env.observe(episode.env)
    return Trajectory(observations, actions, rewards, running, cut, final)


class Returns(NamedTuple):
    """Returns of episodes, from raw rewards."""

    undiscounted: Float[AnyArray, "*episodes"]
    discounted: Float[AnyArray, "*episodes"]

    def after(self, reward: AnyArray, elapsed: AnyArray, discount: float) -> Returns:
        """Return the sums with the reward of one more step, in JAX or NumPy.

        `elapsed` counts the steps before it.
        """
        return Returns(self.undiscounted + reward, self.discounted + discount**elapsed * reward)


def play_returns(env: Environment, act: Act, key: Key, discount: float) -> Returns:
    """Play one episode and return its returns."""
    reset_key, run_key = jax.random.split(key)

    def running(carry: tuple[Episode, Bool[Array, ""], Returns]) -> Array:
        return ~carry[1]

    def step(
        carry: tuple[Episode, Bool[Array, ""], Returns],
    ) -> tuple[Episode, Bool[Array, ""], Returns]:
        episode, _, returns = carry
        elapsed = episode.elapsed
        action = act(env.observe(episode.env), elapsed)
        env_key = jax.random.fold_in(run_key, elapsed)
        episode, found = advance(env, episode, action, env_key)
        return episode, found.last, returns.after(found.reward, elapsed, discount)

    start = (begin(env, reset_key), jnp.bool_(False), Returns(jnp.float32(0), jnp.float32(0)))
    return jax.lax.while_loop(running, step, start)[2]
