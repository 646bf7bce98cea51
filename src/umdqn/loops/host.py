"""The host loop: environments run in Python, acting and learning are compiled."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from umdqn.agents.agent import Agent
from umdqn.agents.state import AgentState
from umdqn.envs.hosted import HostEnv
from umdqn.exploration.exploration import Moment
from umdqn.loops.acting import act_on_batch, follow_on_batch, random_on_batch
from umdqn.loops.compilation import kept_programs
from umdqn.loops.loop import Loop, learn_batch
from umdqn.loops.progress import Progress
from umdqn.replay.transition import Batch, host_transition
from umdqn.specs import Key

QUEUED_BATCHES = 40
"""More updates than JAX lets wait in its queue; each keeps its batch."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class HostLoop(Loop):
    """Trains one agent on copies of an environment that runs in Python."""

    make: Callable[[int], HostEnv]
    copies: int = 1

    def _moment(self, step: Any) -> Moment:
        return Moment.on_host(step, self.copies)


class HostPrograms:
    """Acting and learning, compiled over flat lists of arrays.

    Taking a state apart and putting it together again at every call would cost more than acting.
    """

    def __init__(self, agent: Agent, copies: int):
        shapes = jax.eval_shape(agent.init, jax.random.key(0))
        self.structure = jax.tree.structure(shapes)
        self._follows = agent.policy is not None

        def act(
            leaves: list[Array], observations: Array, moment: Moment, key: Key
        ) -> Int[Array, "copies"]:
            learned = jax.tree.unflatten(self.structure, leaves).learned
            return act_on_batch(agent, learned, observations, moment, key)

        def random(moment: Moment, key: Key) -> Int[Array, "copies"]:
            return random_on_batch(agent, copies, moment, key)

        def learn(
            leaves: list[Array], progress: Progress, batch: Batch, step: Int[Array, ""], key: Key
        ) -> tuple[tuple[list[Array], Progress], Float[Array, "batch"]]:
            """One update; its randomness comes from the run's key and its number alone."""
            state = jax.tree.unflatten(self.structure, leaves)
            key = jax.random.fold_in(key, state.updates)
            (state, progress), losses = learn_batch(agent, state, progress, batch, step, key)
            return (jax.tree.leaves(state), progress), losses

        def follow(actions: Array, moment: Moment, key: Key) -> Int[Array, "copies"]:
            return follow_on_batch(agent, actions, moment, key)

        self.init = jax.jit(agent.init)
        self.follow = jax.jit(follow)
        self.act = jax.jit(act)
        self.random = jax.jit(random)
        self.learn = jax.jit(learn, donate_argnums=(0, 1))

    def warm(self, state: AgentState, key: Key, observations: np.ndarray, batch_size: int) -> None:
        """Run all programs on blank data, so that the memory they need is taken now."""
        leaves = jax.tree.map(jnp.copy, jax.tree.leaves(state))
        progress = jax.device_put(Progress.none(), key.device)
        start = Moment.on_host(0)
        jax.block_until_ready(self.random(start, key))
        if self._follows:
            followed = np.zeros(len(observations), np.int64)
            jax.block_until_ready(self.follow(followed, start, key))
        else:
            jax.block_until_ready(self.act(leaves, observations, start, key))
        for _ in range(QUEUED_BATCHES):
            seen = np.zeros((2, batch_size, *observations.shape[1:]), observations.dtype)
            numbers, counts = np.zeros(batch_size, np.float32), np.zeros(batch_size, np.int32)
            blank = host_transition(seen[0], counts, numbers, numbers, seen[1], counts)
            index: Any = np.zeros(batch_size, np.int64)
            weight: Any = np.ones(batch_size, np.float32)
            batch = Batch(blank, index, weight)
            (leaves, progress), _ = self.learn(leaves, progress, batch, np.int32(0), key)
        jax.block_until_ready(progress)


@kept_programs
def host_programs(agent: Agent, copies: int) -> HostPrograms:
    """Return the programs of an agent, compiled once per process."""
    return HostPrograms(agent, copies)
