"""Forecasts along episodes of environments that run in Python, by the rules of compiled ones."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float

from umdqn.agents.agent import Agent
from umdqn.agents.state import Learned
from umdqn.calibration.forecasts import Forecasts, Judged, counted_steps, draw, judge
from umdqn.envs.hosted import HostEnv
from umdqn.loops.acting import greedy_program
from umdqn.loops.compilation import kept_programs
from umdqn.loops.host_episodes import HostEpisode, play_hosted
from umdqn.specs import Key

_BATCH = 64

Judge = Callable[[Any, Any, Any], Judged]
"""Judges returns, given batches of observations, actions and returns."""
Rest = Callable[[np.ndarray, int], float]
"""Draws the rest of a return, given the last observation and the number of the episode."""


@kept_programs
def _judge_program(agent: Agent) -> Callable[..., Judged]:
    def judged(learned: Learned, seen: Any, action: Any, realised: Any) -> Judged:
        return judge(agent.law(learned, seen, action), realised)

    return jax.jit(jax.vmap(judged, in_axes=(None, 0, 0, 0)))


@kept_programs
def _rest_program(agent: Agent) -> Callable[..., Float[Array, ""]]:
    def rest(learned: Learned, seen: Any, action: Any, key: Key) -> Float[Array, ""]:
        return draw(agent.law(learned, seen, action), key)

    return jax.jit(rest)


def forecast_hosted(
    env: HostEnv,
    agent: Agent,
    learned: Learned,
    discount: float,
    completes: bool,
    episodes: int,
    seed: int,
    limit: int,
) -> Forecasts:
    """Play episodes of an agent's policy and judge the return of every step that counts.

    Episodes are given up after `limit` steps, which cuts them like a time limit.
    """
    greedy, judged, rest = greedy_program(agent), _judge_program(agent), _rest_program(agent)
    key = jax.random.key(seed)

    def completed(seen: np.ndarray, number: int) -> float:
        action = np.int32(greedy(learned, seen[None])[0])
        return float(rest(learned, seen, action, jax.random.fold_in(key, number)))

    return collect(
        env,
        islice(play_hosted(env, lambda seen: greedy(learned, seen), seed, limit), episodes),
        lambda *batch: judged(learned, *batch),
        completed,
        discount,
        completes,
    )


def collect(
    env: HostEnv, played: Any, judged: Judge, rest: Rest, discount: float, completes: bool
) -> Forecasts:
    """Judge the returns of played episodes."""
    limit = env.spec.time_limit if completes else None
    found: list[tuple[np.ndarray, np.ndarray, Judged]] = []
    for number, episode in enumerate(played):
        length = len(episode.rewards)
        cut = not (episode.terminated or (episode.truncated and not completes))
        if cut:
            limit = min(limit or length, length)
        ending = rest(episode.final, number) if cut else 0.0
        returns = _returns(env.spec.clipped(episode.rewards), discount, ending)
        weight = cut * np.float32(discount) ** (length - np.arange(length, dtype=np.float32))
        found.append((returns, weight, _in_batches(judged, episode, returns)))
    longest = max(len(returns) for returns, _, _ in found)
    steps = longest if limit is None else min(counted_steps(discount, limit), longest)
    valid = np.stack([np.arange(steps) < len(returns) for returns, _, _ in found])
    padded = jax.tree.map(lambda *rows: np.stack([_padded(row, steps) for row in rows]), *found)
    realised, weight, judgement = padded
    return Forecasts(realised, judgement, weight, valid)


def _padded(row: np.ndarray, steps: int) -> np.ndarray:
    kept = np.asarray(row[:steps], np.float32)
    return np.pad(kept, (0, steps - len(kept)))


def _returns(rewards: np.ndarray, discount: float, ending: float) -> np.ndarray:
    """Return the discounted sum of rewards from every step on, with what comes after the end."""
    totals, total = [], ending
    for reward in rewards[::-1].tolist():
        total = reward + discount * total
        totals.append(total)
    return np.array(totals[::-1], np.float32)


def _in_batches(judged: Judge, episode: HostEpisode, returns: np.ndarray) -> Judged:
    """Judge returns in batches of one size, so that one program compiles."""
    done = []
    chosen = np.array(episode.actions, np.int32)
    for begin in range(0, len(returns), _BATCH):
        rows = np.arange(begin, min(begin + _BATCH, len(returns)))
        filled = np.resize(rows, _BATCH)
        batch = np.stack([episode.observations[row] for row in filled])
        done.append(judged(batch, chosen[filled], returns[filled]))
    # The last batch was filled up with steps that came before.
    return jax.tree.map(lambda *parts: np.concatenate(parts)[: len(returns)], *done)
