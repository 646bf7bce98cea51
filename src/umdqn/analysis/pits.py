"""Probability integral transforms (PITs): realised returns mapped through predicted CDFs."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Shaped

from umdqn.envs.environment import Environment
from umdqn.envs.hosted import HostEnv
from umdqn.loops.episodes import Act, trajectory
from umdqn.loops.host_episodes import play_hosted
from umdqn.specs import Key

# Rewards that a time limit cuts off must be discounted by less than this.
_NEGLIGIBLE = 1e-3
_BATCH = 256

Cdf = Callable[[Shaped[Array, "..."], Int[Array, ""], Float[Array, ""]], Float[Array, ""]]
"""Maps an observation, an action and z to the probability of a return of at most z."""


class Pits(NamedTuple):
    """Transforms of realised returns, one per step, and which steps count."""

    values: Float[np.ndarray, "episodes steps"]
    valid: Bool[np.ndarray, "episodes steps"]


def usable_steps(discount: float, time_limit: int | None) -> int | None:
    """Return how many steps of an episode have returns that a time limit hardly changes.

    At least one; None, for all, if there is no limit. Steps are excluded by their number alone:
    selecting by how an episode ended would bias the returns. If even the first step's return is
    cut, `cut_weight` in the report gives the discount of the missing part.
    """
    if time_limit is None:
        return None
    needed = math.ceil(math.log(_NEGLIGIBLE) / math.log(discount)) if discount > 0 else 0
    return max(time_limit - needed, 1)


def realised_pits(
    env: Environment,
    act: Act,
    cdf: Cdf,
    discount: float,
    episodes: int,
    key: Key,
) -> Pits:
    """Play episodes of a policy and transform the discounted return of every usable step."""
    limit = env.time_limit
    steps = usable_steps(discount, limit) or limit

    def episode(key: Key) -> tuple[Array, Array]:
        played = trajectory(env, act, key)

        def back(total: Float[Array, ""], reward: Float[Array, ""]) -> tuple[Array, Array]:
            total = reward + discount * total
            return total, total

        _, returns = jax.lax.scan(back, jnp.float32(0), played.rewards, reverse=True)
        usable = (played.observations[:steps], played.actions[:steps], returns[:steps])
        return jax.vmap(cdf)(*usable), played.running[:steps]

    @jax.jit
    def play(keys: Key) -> tuple[Array, Array]:
        return jax.lax.map(episode, keys, batch_size=_BATCH)

    values, valid = play(jax.random.split(key, episodes))
    return Pits(np.asarray(values), np.asarray(valid))


def hosted_pits(
    env: HostEnv,
    act: Callable[[np.ndarray], Any],
    cdfs: Callable[[Any, Any, Any], Any],
    discount: float,
    episodes: int,
    seed: int,
    limit: int,
) -> tuple[Pits, int | None]:
    """Do the same in an environment that runs in Python; also return where episodes were cut.

    `act` and `cdfs` take batches. Episodes are given up after `limit` steps, which cuts them too.
    """
    values: list[np.ndarray] = []
    cut = env.spec.time_limit
    for episode in islice(play_hosted(env, act, seed, limit), episodes):
        length = len(episode.rewards)
        if not episode.terminated:
            cut = min(cut or length, length)
        returns = _returns(_clipped(env, episode.rewards), discount)
        chosen = np.array(episode.actions, np.int32)
        values.append(_in_batches(cdfs, episode.observations, chosen, returns))
    steps = usable_steps(discount, cut) or max(map(len, values))
    padded, valid = np.zeros((episodes, steps), np.float32), np.zeros((episodes, steps), bool)
    for row, found in enumerate(values):
        count = min(len(found), steps)
        padded[row, :count], valid[row, :count] = found[:count], True
    return Pits(padded, valid), cut


def _clipped(env: HostEnv, rewards: list[float]) -> np.ndarray:
    """Clip rewards as learning does: laws are laws of the sum of clipped rewards."""
    clip = env.spec.reward_clip
    return np.asarray(rewards) if clip is None else np.clip(rewards, -clip, clip)


def _returns(rewards: np.ndarray, discount: float) -> np.ndarray:
    """Return the discounted sum of rewards from every step on."""
    totals, total = [], 0.0
    for reward in rewards[::-1].tolist():
        total = reward + discount * total
        totals.append(total)
    return np.array(totals[::-1], np.float32)


def _in_batches(
    cdfs: Callable[[Any, Any, Any], Any],
    seen: list[np.ndarray],
    chosen: np.ndarray,
    returns: np.ndarray,
) -> np.ndarray:
    """Transform returns in batches of one size, so that one program compiles."""
    done = []
    for begin in range(0, len(seen), _BATCH):
        rows = np.arange(begin, min(begin + _BATCH, len(seen)))
        filled = np.resize(rows, _BATCH)
        batch = np.stack([seen[row] for row in filled])
        done.append(np.asarray(cdfs(batch, chosen[filled], returns[filled]))[: len(rows)])
    return np.concatenate(done)
