"""Where realised returns fall in the laws that foretold them: probability integral transforms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree, Shaped

from umdqn.envs import Environment, HostEnv
from umdqn.types import Key

# What a time limit cuts off must weigh less than this.
_NEGLIGIBLE = 1e-3
_BATCH = 256

Cdf = Callable[[Shaped[Array, "..."], Int[Array, ""], Float[Array, ""]], Float[Array, ""]]
"""Probability of a return of at most z, from an observation, an action and z."""


class Pits(NamedTuple):
    """Transforms of realised returns, one a step, and which steps count."""

    values: Float[np.ndarray, "episodes steps"]
    valid: Bool[np.ndarray, "episodes steps"]


def usable_steps(discount: float, time_limit: int | None) -> int | None:
    """Steps of an episode after which what the time limit cuts off is negligible; at least one.

    All of them, said as None, where there is no limit.

    Steps are left out by their number alone: choosing by how an episode ended would distort the
    returns. Where even the first step's return is cut, `cut_weight` in the report says how much
    the part that is missing weighs.
    """
    if time_limit is None:
        return None
    needed = math.ceil(math.log(_NEGLIGIBLE) / math.log(discount)) if discount > 0 else 0
    return max(time_limit - needed, 1)


def realised_pits(
    env: Environment,
    act: Callable[[Shaped[Array, "..."]], Int[Array, ""]],
    cdf: Cdf,
    discount: float,
    episodes: int,
    key: Key,
) -> Pits:
    """Play episodes of a policy and transform the discounted return of every usable step."""
    limit = env.time_limit
    steps = usable_steps(discount, limit) or limit

    def episode(key: Key) -> tuple[Array, Array]:
        reset_key, run_key = jax.random.split(key)

        def step(
            carry: tuple[PyTree, Bool[Array, ""]], elapsed: Int[Array, ""]
        ) -> tuple[tuple[PyTree, Bool[Array, ""]], tuple[Array, ...]]:
            state, running = carry
            observation = env.observe(state)
            action = act(observation)
            state, outcome = env.step(state, action, jax.random.fold_in(run_key, elapsed))
            reward = jnp.where(running, outcome.reward, 0.0)
            seen = (observation, action, reward, running)
            return (state, running & ~outcome.terminated), seen

        start = (env.reset(reset_key), jnp.bool_(True))
        _, (observations, actions, rewards, running) = jax.lax.scan(step, start, jnp.arange(limit))

        def back(total: Float[Array, ""], reward: Float[Array, ""]) -> tuple[Array, Array]:
            total = reward + discount * total
            return total, total

        _, returns = jax.lax.scan(back, jnp.float32(0), rewards, reverse=True)
        values = jax.vmap(cdf)(observations[:steps], actions[:steps], returns[:steps])
        return values, running[:steps]

    @jax.jit
    def play(keys: Key) -> tuple[Array, Array]:
        return jax.lax.map(episode, keys, batch_size=_BATCH)

    values, valid = play(jax.random.split(key, episodes))
    return Pits(np.asarray(values), np.asarray(valid))


def hosted_pits(
    env: HostEnv,
    act: Callable[[np.ndarray], np.ndarray],
    cdfs: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
    discount: float,
    episodes: int,
    seed: int,
    limit: int,
) -> tuple[Pits, int | None]:
    """The same for an environment that runs in Python, and after how many steps it cut episodes.

    `act` and `cdfs` take batches. Episodes longer than `limit` are given up, which cuts them too.
    """
    values: list[np.ndarray] = []
    cut = env.spec.time_limit
    observation = env.reset(seed)
    while len(values) < episodes:
        seen, chosen, rewards = [], [], []
        while True:
            actions = np.asarray(act(observation))
            step = env.step(actions)
            seen.append(observation[0])
            chosen.append(actions[0])
            rewards.append(_clipped(env, step.reward[0]))
            observation = step.following
            if step.terminated[0] or step.truncated[0]:
                break
            if len(rewards) >= limit:
                observation = env.restart(0)[None]
                break
        if not step.terminated[0]:
            cut = min(cut or len(rewards), len(rewards))
        values.append(_in_batches(cdfs, seen, np.array(chosen), _returns(rewards, discount)))
    steps = usable_steps(discount, cut) or max(map(len, values))
    padded, valid = np.zeros((episodes, steps), np.float32), np.zeros((episodes, steps), bool)
    for row, episode in enumerate(values):
        count = min(len(episode), steps)
        padded[row, :count], valid[row, :count] = episode[:count], True
    return Pits(padded, valid), cut


def _clipped(env: HostEnv, reward: float) -> float:
    """Laws are about the rewards that learning sees."""
    clip = env.spec.reward_clip
    return float(reward if clip is None else np.clip(reward, -clip, clip))


def _returns(rewards: list[float], discount: float) -> np.ndarray:
    """Discounted sums from every step on."""
    totals, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + discount * total
        totals.append(total)
    return np.array(totals[::-1], np.float32)


def _in_batches(
    cdfs: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray],
    seen: list[np.ndarray],
    chosen: np.ndarray,
    returns: np.ndarray,
) -> np.ndarray:
    """Transforms in batches of one size, so that few programs compile."""
    done = []
    for begin in range(0, len(seen), _BATCH):
        rows = np.arange(begin, min(begin + _BATCH, len(seen)))
        filled = np.resize(rows, _BATCH)
        batch = np.stack([seen[row] for row in filled])
        done.append(np.asarray(cdfs(batch, chosen[filled], returns[filled]))[: len(rows)])
    return np.concatenate(done)
