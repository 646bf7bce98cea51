"""Monte Carlo laws: returns of simulated episodes, for any compiled environment."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from umdqn.envs.environment import Environment
from umdqn.specs import Key


def monte_carlo_returns(
    env: Environment,
    policy: Callable[[PyTree, Key], Int[Array, ""]],
    state: PyTree,
    action: int,
    discount: float,
    episodes: int,
    horizon: int,
    key: Key,
) -> Float[Array, "episodes"]:
    """Return discounted returns of `action` in `state`, then `policy`, up to `horizon` steps."""

    def episode(key: Key) -> Float[Array, ""]:
        def step(
            carry: tuple[PyTree, Array, Array], elapsed: Int[Array, ""]
        ) -> tuple[tuple[PyTree, Array, Array], None]:
            state, running, total = carry
            act_key, env_key = jax.random.split(jax.random.fold_in(key, elapsed))
            chosen = jnp.where(elapsed == 0, action, policy(state, act_key))
            state, outcome = env.step(state, chosen, env_key)
            total = total + jnp.where(running, discount**elapsed * outcome.reward, 0.0)
            return (state, running & ~outcome.terminated, total), None

        start = (state, jnp.bool_(True), jnp.float32(0))
        (_, _, total), _ = jax.lax.scan(step, start, jnp.arange(horizon))
        return total

    return jax.jit(jax.vmap(episode))(jax.random.split(key, episodes))
