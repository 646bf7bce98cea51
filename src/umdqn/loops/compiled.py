"""The compiled loop: acting, stepping, remembering and learning in one program."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from umdqn.agents import Agent, AgentState, EpsilonGreedy, Replay, ReplayConfig
from umdqn.envs import Environment
from umdqn.types import Key, Transition


class LoopState(NamedTuple):
    """Everything that a run of one seed is at one step: the program's only input and output."""

    agent: AgentState
    replay: Replay
    env: PyTree
    elapsed: Int[Array, ""]
    """Steps of the current episode."""
    episode_return: Float[Array, ""]
    step: Int[Array, ""]
    key: Key


class Progress(NamedTuple):
    """What happened in a chunk."""

    episodes: Int[Array, ""]
    returns: Float[Array, ""]
    """Sum of the undiscounted returns of the episodes that ended."""
    updates: Int[Array, ""]
    loss: Float[Array, ""]
    """Sum of the losses."""
    first_bad_step: Int[Array, ""]
    """Step of the first update whose loss was not finite, or -1."""

    @classmethod
    def none(cls) -> Progress:
        zero, sum_ = jnp.int32(0), jnp.float32(0)
        return cls(zero, sum_, zero, sum_, jnp.int32(-1))


@dataclasses.dataclass(frozen=True)
class CompiledLoop:
    """Trains one agent on a compiled environment."""

    agent: Agent
    env: Environment
    exploration: EpsilonGreedy
    replay: ReplayConfig
    discount: float
    update_every: int
    truncation_terminates: bool

    def init(self, key: Key) -> LoopState:
        """The state before the first step."""
        agent_key, env_key, run_key = jax.random.split(key, 3)
        env = self.env.reset(env_key)
        observation = self.env.observe(env)
        zero = jnp.float32(0)
        example = Transition(observation, jnp.int32(0), zero, zero, observation)
        replay = Replay.empty(example, self.replay.capacity)
        agent = self.agent.init(agent_key)
        return LoopState(agent, replay, env, jnp.int32(0), zero, jnp.int32(0), run_key)

    def chunk(self, state: LoopState, steps: Int[Array, ""]) -> tuple[LoopState, Progress]:
        """Take `steps` steps. The number is an argument, so that every length is one program."""
        end = state.step + steps

        def warm(carry: tuple[LoopState, Progress]) -> tuple[LoopState, Progress]:
            return self._interact(*carry, jnp.float32(1.0))

        def train(carry: tuple[LoopState, Progress]) -> tuple[LoopState, Progress]:
            state, progress = carry
            epsilon = self.exploration.epsilon(state.step - self.replay.warmup)
            state, progress = self._interact(state, progress, epsilon)
            if self.update_every == 1:
                return self._learn(state, progress)
            due = state.step % self.update_every == 0
            return jax.lax.cond(due, self._learn, lambda *carry: carry, state, progress)

        def before(limit: Array | int):  # type: ignore[no-untyped-def]
            return lambda carry: carry[0].step < limit

        carry = (state, Progress.none())
        carry = jax.lax.while_loop(before(jnp.minimum(end, self.replay.warmup)), warm, carry)
        return jax.lax.while_loop(before(end), train, carry)

    def _interact(
        self, state: LoopState, progress: Progress, epsilon: Float[Array, ""]
    ) -> tuple[LoopState, Progress]:
        """One step of the environment, stored; a new episode begins where one ended."""
        act_key, env_key, reset_key, _, _ = self._keys(state)
        observation = self.env.observe(state.env)
        action = self.agent.act(state.agent.params, observation, epsilon, act_key)
        env, outcome = self.env.step(state.env, action, env_key)
        elapsed = state.elapsed + 1
        truncated = elapsed >= self.env.spec.time_limit
        done = outcome.terminated | truncated
        final = done if self.truncation_terminates else outcome.terminated
        discount = jnp.where(final, 0.0, self.discount).astype(jnp.float32)
        seen = Transition(observation, action, outcome.reward, discount, self.env.observe(env))
        total = state.episode_return + outcome.reward
        fresh = self.env.reset(reset_key)
        env = jax.tree.map(lambda new, old: jnp.where(done, new, old), fresh, env)
        progress = progress._replace(
            episodes=progress.episodes + done,
            returns=progress.returns + jnp.where(done, total, 0.0),
        )
        state = state._replace(
            replay=state.replay.add(seen),
            env=env,
            elapsed=jnp.where(done, 0, elapsed),
            episode_return=jnp.where(done, 0.0, total),
            step=state.step + 1,
        )
        return state, progress

    def _learn(self, state: LoopState, progress: Progress) -> tuple[LoopState, Progress]:
        """One update of the agent."""
        *_, sample_key, learn_key = self._keys(state)
        batch = state.replay.sample(sample_key, self.replay.batch_size)
        agent, loss = self.agent.learn(state.agent, batch, learn_key)
        bad = ~jnp.isfinite(loss) & (progress.first_bad_step < 0)
        progress = progress._replace(
            updates=progress.updates + 1,
            loss=progress.loss + loss,
            first_bad_step=jnp.where(bad, state.step, progress.first_bad_step),
        )
        return state._replace(agent=agent), progress

    def _keys(self, state: LoopState) -> Key:
        """Fresh keys for every step, from the run's key and the step alone."""
        return jax.random.split(jax.random.fold_in(state.key, state.step), 5)
