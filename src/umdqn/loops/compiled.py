"""The compiled loop: acting, stepping, remembering and learning in one program."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from umdqn.agents import Agent, AgentState, EpsilonGreedy, Replay, ReplayConfig
from umdqn.envs import Environment
from umdqn.loops.rings import Rows, put_rows, ring_rows
from umdqn.loops.snapshot import Restored, Snapshot, from_named, named_leaves
from umdqn.types import AnyArray, Key, Transition


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


def _rest(state: LoopState) -> tuple[PyTree, Array, Array, Array, Array]:
    """Everything small in a state, as plain arrays."""
    key = jax.random.key_data(state.key)
    return state.env, state.elapsed, state.episode_return, state.step, key


def _rings(replay: Replay) -> dict[str, np.ndarray]:
    """The arrays of a memory in NumPy, by name."""
    return {name: np.asarray(ring) for name, ring in replay._asdict().items() if name != "added"}


class Progress(NamedTuple):
    """What happened in a chunk."""

    episodes: Int[AnyArray, ""]
    returns: Float[AnyArray, ""]
    """Sum of the undiscounted returns of the episodes that ended."""
    updates: Int[AnyArray, ""]
    loss: Float[AnyArray, ""]
    """Sum of the losses."""
    first_bad_step: Int[AnyArray, ""]
    """Step of the first update whose loss or result was not finite, or -1."""

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
        replay = Replay.empty(self.env.observe(env), self.replay.capacity)
        agent = self.agent.init(agent_key)
        return LoopState(agent, replay, env, jnp.int32(0), jnp.float32(0), jnp.int32(0), run_key)

    def chunk(self, state: LoopState, steps: Int[Array, ""]) -> tuple[LoopState, Progress]:
        """Take `steps` steps. The number is an argument, so that every length is one program."""
        end = state.step + steps

        def interact_until(
            limit: Int[Array, ""], carry: tuple[LoopState, Progress], warm: bool
        ) -> tuple[LoopState, Progress]:
            return jax.lax.while_loop(
                lambda carry: carry[0].step < limit,
                lambda carry: self._interact(*carry, warm),
                carry,
            )

        def train(carry: tuple[LoopState, Progress]) -> tuple[LoopState, Progress]:
            # An inner loop even where it takes one step: XLA writes the memory in place inside it,
            # but would copy the whole memory if it could fuse the write with the sampling below.
            step = carry[0].step
            due = step - step % self.update_every + self.update_every
            return self._learn_when_due(*interact_until(jnp.minimum(due, end), carry, warm=False))

        carry = (state, Progress.none())
        carry = interact_until(jnp.minimum(end, self.replay.warmup), carry, warm=True)
        state, progress = jax.lax.while_loop(lambda carry: carry[0].step < end, train, carry)
        return state, check_finite(state.agent.params, state.step, progress)

    def snapshot(self, state: LoopState) -> Snapshot:
        """A state as files can keep it."""
        replay = jax.tree.map(np.asarray, state.replay)
        entered = int(replay.added)

        def rows(first: Sequence[int], last: Sequence[int]) -> Rows:
            return ring_rows(_rings(replay), 0, first[0], last[0])

        rest = {name: np.asarray(leaf) for name, leaf in named_leaves(_rest(state)).items()}
        room = [self.replay.capacity]
        row_bytes = sum(ring.nbytes for ring in _rings(replay).values()) // self.replay.capacity
        return Snapshot(state.agent, rest, [entered], room, row_bytes, rows)

    def restore(self, restored: Restored, where: str) -> LoopState:
        """The state that a snapshot was taken of."""
        like = jax.eval_shape(self.init, jax.random.key(0))
        rest = from_named(jax.eval_shape(_rest, like), restored.rest, where)
        replay = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), like.replay)
        for piece in restored.rows:
            put_rows(_rings(replay), 0, piece)
        replay = replay._replace(added=np.int32(restored.entered[0]))
        env, elapsed, episode_return, step, key = rest
        state = LoopState(
            restored.agent,
            replay,
            env,
            elapsed,
            episode_return,
            step,
            jax.random.wrap_key_data(jnp.asarray(key)),
        )
        return jax.tree.map(jnp.asarray, state)

    def _interact(
        self, state: LoopState, progress: Progress, warm: bool
    ) -> tuple[LoopState, Progress]:
        """One step of the environment, stored; a new episode begins where one ended."""
        act_key, env_key, reset_key, _, _ = self._keys(state)
        if self.exploration.repeat > 1:
            # The choice of the first step of a block is that of all of them.
            first = state.step - state.step % self.exploration.repeat
            act_key = self._keys(state._replace(step=first))[0]
        epsilon = 1.0 if warm else self.exploration.epsilon(state.step - self.replay.warmup)
        observation = self.env.observe(state.env)
        action = self.agent.act(state.agent.params, observation, epsilon, act_key)
        env, outcome = self.env.step(state.env, action, env_key)
        elapsed = state.elapsed + 1
        truncated = elapsed >= self.env.time_limit
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

    def _learn_when_due(self, state: LoopState, progress: Progress) -> tuple[LoopState, Progress]:
        """An update every `update_every` steps; a chunk may end between two of them."""
        *_, sample_key, learn_key = self._keys(state)

        def learn(agent: AgentState, progress: Progress) -> tuple[AgentState, Progress]:
            batch = state.replay.sample(sample_key, self.replay.batch_size)
            agent, loss = self.agent.learn(agent, batch, learn_key)
            bad = ~jnp.isfinite(loss) & (progress.first_bad_step < 0)
            return agent, progress._replace(
                updates=progress.updates + 1,
                loss=progress.loss + loss,
                first_bad_step=jnp.where(bad, state.step, progress.first_bad_step),
            )

        if self.update_every == 1:
            agent, progress = learn(state.agent, progress)
        else:
            due = state.step % self.update_every == 0
            agent, progress = jax.lax.cond(due, learn, lambda *carry: carry, state.agent, progress)
        return state._replace(agent=agent), progress

    def _keys(self, state: LoopState) -> Key:
        """Fresh keys for every step, from the run's key and the step alone."""
        return jax.random.split(jax.random.fold_in(state.key, state.step), 5)


def check_finite(params: PyTree, step: Int[AnyArray, ""] | int, progress: Progress) -> Progress:
    """Note parameters that a last update spoilt before any loss could show it."""
    finite = jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(params)])
    bad = ~jnp.all(finite) & (progress.first_bad_step < 0)
    return progress._replace(first_bad_step=jnp.where(bad, step, progress.first_bad_step))
