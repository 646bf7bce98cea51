"""The compiled loop: acting, stepping, remembering and learning in one program."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree, Shaped

from umdqn.agents.state import AgentState
from umdqn.envs.environment import Environment
from umdqn.exploration.exploration import Moment
from umdqn.loops.episodes import Episode, advance, begin, bootstrap_discount
from umdqn.loops.loop import ExploreKeys, Loop, SeedKeys, learn_batch
from umdqn.loops.progress import Progress, check_finite
from umdqn.loops.snapshot import (
    Like,
    Restored,
    Snapshot,
    check_arrays,
    from_named,
    named_leaves,
    require,
)
from umdqn.replay.rings import Rings
from umdqn.replay.transition import Transition
from umdqn.specs import Key


class LoopState(NamedTuple):
    """The complete state of one seed at one step.

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


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompiledLoop(Loop):
    """Trains one agent on a compiled environment, which comes in one copy per seed."""

    env: Environment

    @property
    def copies(self) -> int:
        return 1

    def _moment(self, step: Any) -> Moment:
        return Moment(step, step)

    def init(self, key: Key) -> LoopState:
        """Return the state before the first step."""
        keys = SeedKeys.of(key)
        episode = begin(self.env, keys.env)
        rings = self.memory.empty(jnp)
        rings = self.memory.begin(rings, 0, self.env.observe(episode.env))
        return LoopState(self.agent.init(keys.agent), rings, episode, keys.run, keys.explore)

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
            # Steps are added to, not compared with: the next update may lie beyond 2^31.
            ahead = jnp.minimum(self.steps_to_update(carry[0]), end - carry[0])
            return self._learn_when_due(*interact_until(carry[0] + ahead, carry, warm=False))

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
        def act(moment: Moment, key: Key) -> Int[Array, ""]:
            return self.agent.act(state.agent.learned, observation, moment, key)

        keys = ExploreKeys.of(state.explore_key)
        return self.choose(step, warm, keys, self.agent.random, act)

    def _learn_when_due(self, step: Int[Array, ""], state: LoopState, progress: Progress) -> Carry:
        """Update if one is due at a step; a chunk may end before it."""
        sample_key, learn_key = self._keys(state.key, step)[2:]

        def learn(state: LoopState, progress: Progress) -> tuple[LoopState, Progress]:
            memory, (agent, progress) = self.update(
                state.memory,
                sample_key,
                lambda batch: learn_batch(
                    self.agent, state.agent, progress, batch, step, learn_key
                ),
            )
            return state._replace(agent=agent, memory=memory), progress

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
        rest = {name: np.asarray(leaf) for name, leaf in named_leaves(_rest(state)).items()}
        rest |= {"step": np.array(step)}
        rings = jax.tree.map(np.asarray, state.memory)
        return Snapshot.of(state.agent, rest, self.memory, rings)

    def restore(self, restored: Restored, where: str) -> tuple[LoopState, int]:
        """Return the state of a snapshot, and its step."""
        like = jax.eval_shape(self.init, jax.random.key(0))
        arrays = dict(restored.rest)
        check_arrays(arrays, {"step": Like("i", ())}, where)
        step = int(arrays.pop("step"))
        counts = [step, *restored.entered]
        require(all(0 <= count < 2**31 for count in counts), "a count is out of range", where)
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
