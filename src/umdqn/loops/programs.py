"""The compiled programs of the host loop: acting and learning."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from umdqn.agents import Agent, AgentState
from umdqn.types import Key, Transition

# More updates than JAX lets wait in its queue; each keeps its batch.
_WARM = 40


class Losses(NamedTuple):
    """Of the updates of a chunk: their sum, and the first update that was not finite."""

    total: Float[Array, ""]
    first_bad: Int[Array, ""]

    @classmethod
    def none(cls) -> Losses:
        return cls(jnp.float32(0), jnp.int32(-1))


class Programs:
    """Acting and learning, compiled over flat lists of arrays.

    To take a state apart and put it together again at every call would cost more than acting.
    """

    def __init__(self, agent: Agent):
        shapes = jax.eval_shape(agent.init, jax.random.key(0))
        self.whole = jax.tree.structure(shapes)
        params = jax.tree.structure(shapes.params)
        self.num_params = len(jax.tree.leaves(shapes.params))

        def act(leaves: list[Array], observations: Array) -> Array:
            greedy = jax.vmap(agent.greedy, in_axes=(None, 0))
            return greedy(jax.tree.unflatten(params, leaves), observations)

        def learn(
            leaves: list[Array], losses: Losses, batch: Transition, key: Key
        ) -> tuple[list[Array], Losses]:
            """One update; its randomness comes from the run's key and its number alone."""
            state = jax.tree.unflatten(self.whole, leaves)
            number = state.updates
            state, loss = agent.learn(state, batch, jax.random.fold_in(key, number))
            bad = ~jnp.isfinite(loss) & (losses.first_bad < 0)
            first_bad = jnp.where(bad, number, losses.first_bad)
            return jax.tree.leaves(state), Losses(losses.total + loss, first_bad)

        self.act = jax.jit(act)
        self.learn = jax.jit(learn, donate_argnums=(0, 1))

    def warm(self, state: AgentState, key: Key, observations: np.ndarray, batch_size: int) -> None:
        """Run both on blank data, as training does: what they need of the machine is then taken."""
        leaves = jax.tree.map(jnp.copy, jax.tree.leaves(state))
        losses = jax.device_put(Losses.none(), key.device)
        jax.block_until_ready(self.act(leaves[: self.num_params], observations))
        for _ in range(_WARM):
            seen = np.zeros((2, batch_size, *observations.shape[1:]), observations.dtype)
            numbers = np.zeros(batch_size, np.float32)
            blank: Any = (seen[0], np.zeros(batch_size, np.int32), numbers, numbers, seen[1])
            leaves, losses = self.learn(leaves, losses, Transition(*blank), key)
        jax.block_until_ready(losses)
