"""The compiled loop: acting, stepping, remembering and learning in one program."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree, Shaped

from umdqn.agents.agent import Agent
from umdqn.agents.state import AgentState
from umdqn.envs.environment import Environment
from umdqn.exploration.exploration import Moment
from umdqn.loops.episodes import Episode, advance, begin, bootstrap_discount
from umdqn.loops.progress import Progress, check_finite
from umdqn.loops.saved import Like, check_arrays, require
from umdqn.loops.snapshot import Restored, Snapshot, from_named, named_leaves
from umdqn.replay.memory import Memory
from umdqn.replay.replay import Replay
from umdqn.replay.rings import Rings, Rows
from umdqn.replay.transition import Transition
from umdqn.specs import Key


class LoopState(NamedTuple):
    """Everything that a run of one seed is at one step.

    The number of the step is not in it: seeds that are batched share it, and a counter that differs
    between them would make programs copy the whole memory.
    """

    agent: AgentState
    memory: Rings
    episode: Episode
    key: Key
    """For environments, batches and updates."""
    explore_key: Key
    """For actions."""


Carry = tuple[Int[Array, ""], LoopState, Progress]
"""Step, state, and what happened so far."""


@dataclasses.dataclass(frozen=True)
class CompiledLoop:
    """Trains one agent on a compiled environment. Equal loops share their programs."""

    agent: Agent
    env: Environment
    replay: Replay
    discount: float
    update_every: int
    truncation_terminates: bool

    @cached_property
    def memory(self) -> Memory:
        """The memory; compiled environments come in one copy per seed."""
        return self.replay.memory(self.env.spec.observation, 1)

    def init(self, key: Key) -> LoopState:
        """Return the state before the first step."""
        agent_key, env_key, run_key, explore_key = jax.random.split(key, 4)
        episode = begin(self.env, env_key)
        rings = self.memory.empty(jnp)
        rings = self.memory.begin(rings, 0, self.env.observe(episode.env))
        return LoopState(self.agent.init(agent_key), rings, episode, run_key, explore_key)

    def chunk(
        self, state: LoopState, first: Int[Array, ""], steps: Int[Array, ""]
    ) -> tuple[LoopState, Progress]:
        """Take `steps` steps from step `first` on; every length is the same program."""
        end = first + steps

        def interact_until(limit: Int[Array, ""], carry: Carry, warm: bool) -> Carry:
            return jax.lax.while_loop(
                lambda carry: carry[0] < limit, lambda carry: self._interact(*carry, warm), carry
            )

        def train(carry: Carry) -> Carry:
            # An inner loop even where it takes one step: XLA writes the memory in place inside it,
            # but would copy the whole memory if it could fuse the write with the sampling below.
            due = carry[0] - carry[0] % self.update_every + self.update_every
            return self._learn_when_due(*interact_until(jnp.minimum(due, end), carry, warm=False))

        carry = (first, state, Progress.none())
        carry = interact_until(jnp.minimum(end, self.replay.warmup), carry, warm=True)
        _, state, progress = jax.lax.while_loop(lambda carry: carry[0] < end, train, carry)
        return state, check_finite(state.agent.params, end, progress)

    def _interact(
        self, step: Int[Array, ""], state: LoopState, progress: Progress, warm: bool
    ) -> Carry:
        """Take one step of the environment and store it; start a new episode where one ended."""
        env_key, reset_key = self._keys(state.key, step)[:2]
        observation = self.env.observe(state.episode.env)
        action = self._action(step, state, observation, warm)
        episode, found = advance(self.env, state.episode, action, env_key)
        last = found.last
        discount = bootstrap_discount(found, self.discount, self.truncation_terminates)
        policy = self.agent.policy
        followed = jnp.int32(-1) if policy is None else policy.act(found.observation)
        seen = Transition(observation, action, found.reward, discount, found.observation, followed)
        progress = progress._replace(
            episodes=progress.episodes + last,
            returns=progress.returns + jnp.where(last, episode.total, 0.0),
        )
        fresh = begin(self.env, reset_key)
        episode = jax.tree.map(lambda new, old: jnp.where(last, new, old), fresh, episode)
        following = self.env.observe(episode.env)
        memory = self.memory.add(state.memory, 0, seen, last, following)
        return step + 1, state._replace(memory=memory, episode=episode), progress

    def _action(
        self,
        step: Int[Array, ""],
        state: LoopState,
        observation: Shaped[Array, "..."],
        warm: bool,
    ) -> Int[Array, ""]:
        """Choose an action; a fixed policy is followed during the warm-up, too."""
        since = step if warm else step - self.replay.warmup
        moment, key = Moment(since, since), state.explore_key
        if warm:
            key = jax.random.fold_in(key, 2**31 - 1)
            if self.agent.policy is None:
                return self.agent.random(moment, key)
        return self.agent.act(state.agent.learned, observation, moment, key)

    def _learn_when_due(self, step: Int[Array, ""], state: LoopState, progress: Progress) -> Carry:
        """Update every `update_every` steps; a chunk may end between two updates."""
        sample_key, learn_key = self._keys(state.key, step)[2:]

        def learn(state: LoopState, progress: Progress) -> tuple[LoopState, Progress]:
            batch = self.memory.sample(state.memory, sample_key)
            agent, outcome = self.agent.learn(state.agent, batch, learn_key)
            memory = self.memory.update(state.memory, batch.index, outcome.losses)
            state = state._replace(agent=agent, memory=memory)
            return state, progress.after_update(outcome, step)

        if self.update_every == 1:
            state, progress = learn(state, progress)
        else:
            due = step % self.update_every == 0
            state, progress = jax.lax.cond(due, learn, lambda *same: same, state, progress)
        return step, state, progress

    def _keys(self, key: Key, step: Int[Array, ""]) -> Key:
        """Fresh keys for every step, from the run's key and the step alone."""
        return jax.random.split(jax.random.fold_in(key, step), 4)

    def snapshot(self, state: LoopState, step: int) -> Snapshot:
        """Return a state as files keep it."""
        rings = jax.tree.map(np.asarray, state.memory)
        memory = self.memory

        def rows(first: Sequence[int], last: Sequence[int]) -> Rows:
            return memory.rows(rings, first, last)

        rest = {name: np.asarray(leaf) for name, leaf in named_leaves(_rest(state)).items()}
        row_bytes = memory.storage.row_bytes
        entered = memory.entered(rings)
        rest |= {"step": np.array(step)}
        return Snapshot(state.agent, rest, entered, memory.room, row_bytes, rows)

    def restore(self, restored: Restored, where: str) -> tuple[LoopState, int]:
        """Return the state of a snapshot, and its step."""
        like = jax.eval_shape(self.init, jax.random.key(0))
        arrays = dict(restored.rest)
        check_arrays(arrays, {"step": Like("i", ())}, where)
        step = int(arrays.pop("step"))
        require(0 <= step < 2**31, "its step is out of range", where)
        episode, *keys = from_named(jax.eval_shape(_rest, like), arrays, where)
        rings = self.memory.restore(restored.entered, restored.rows)
        # NumPy counts in 64 bits, compiled programs in 32.
        rings = {n: ring.astype(like.memory[n].dtype, copy=False) for n, ring in rings.items()}
        key, explore_key = (jax.random.wrap_key_data(jnp.asarray(data)) for data in keys)
        state = LoopState(restored.agent, rings, episode, key, explore_key)
        return jax.tree.map(jnp.asarray, state), step


def _rest(state: LoopState) -> tuple[PyTree, Array, Array]:
    """Everything small in a state, as plain arrays."""
    key, explore_key = map(jax.random.key_data, (state.key, state.explore_key))
    return state.episode, key, explore_key
