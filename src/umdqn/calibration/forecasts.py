"""Forecasts: what laws said along episodes, beside the returns that were realised.

Where a time limit cuts an episode, part of its return is missing: agents do not see the time, so
that their laws are those of episodes without a limit. Such returns are completed with a draw from
the law of the state in which the episode was cut,

    G_t = r_t + ... + gamma^(T - t - 1) r_(T - 1) + gamma^(T - t) Z(s_T, a_T).

If the laws are right, G_t follows the law of (s_t, a_t) exactly (the Bellman equation of laws), so
that right laws are calibrated whatever the time limit. Errors of wrong laws are hidden by the share
`gamma^(T - t)`: only steps count for which it is at most `HEAVIEST`. Steps are selected by their
number alone: selecting by how an episode ended would bias the returns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

from umdqn.agents.agent import Agent
from umdqn.agents.state import Learned
from umdqn.envs.environment import Environment
from umdqn.laws.law import Law
from umdqn.loops.compilation import kept_programs
from umdqn.loops.episodes import Act, trajectory
from umdqn.specs import AnyArray, Key

HEAVIEST = 0.25
"""Largest discount of the law that completes a return whose episode was cut."""
_EPISODES = 256
# Steps of each of them whose laws are evaluated at once.
_STEPS = 32

LawOf = Callable[[Shaped[Array, "..."], Int[Array, ""]], Law]
"""Maps an observation and an action to the law of the return."""


class Judged(NamedTuple):
    """What laws say about realised returns."""

    pit: Float[AnyArray, "..."]
    """Probability that the law gives to returns below the realised one."""
    mean: Float[AnyArray, "..."]
    low: Float[AnyArray, "..."]
    """Lower end of the central 90% interval."""
    high: Float[AnyArray, "..."]
    crps: Float[AnyArray, "..."]
    edge: Float[AnyArray, "..."]
    """Mass at the edges of the support; NaN for laws without one."""


class Forecasts(NamedTuple):
    """Laws and returns of the steps of episodes."""

    realised: Float[AnyArray, "*episodes steps"]
    judged: Judged
    weight: Float[AnyArray, "*episodes steps"]
    """Discount of the law that completes the return; 0 where the episode was not cut."""
    valid: Bool[AnyArray, "*episodes steps"]
    """Which steps count: not those after the end."""


def counted_steps(discount: float, limit: int) -> int:
    """Return how many steps of an episode count: at least one."""
    needed = math.ceil(math.log(HEAVIEST) / math.log(discount)) if discount > 0 else 1
    return max(limit - needed + 1, 1)


def judge(law: Law, realised: Float[Array, ""]) -> Judged:
    """Return what one law says about one return."""
    law = law.settled()
    low, high = law.quantile(jnp.array([0.05, 0.95]))
    edge = law.edge_mass
    return Judged(
        law.spread_cdf(realised),
        law.mean,
        low,
        high,
        law.crps(realised),
        jnp.float32(jnp.nan) if edge is None else edge,
    )


def draw(law: Law, key: Key) -> Float[Array, ""]:
    """Return what completes the return of a cut episode."""
    return law.sample(key, 1)[0]


def forecast_episode(
    env: Environment, act: Act, law_of: LawOf, discount: float, completes: bool, key: Key
) -> Forecasts:
    """Play one episode and judge the return of every step that counts.

    If `completes` is false, a time limit ends the return.
    """
    play_key, draw_key = jax.random.split(key)
    played, limit = trajectory(env, act, play_key), env.time_limit
    last_action = act(played.final, jnp.int32(limit))
    cut = played.cut & completes
    rest = jnp.where(cut, draw(law_of(played.final, last_action), draw_key), 0.0)

    def back(total: Float[Array, ""], reward: Float[Array, ""]) -> tuple[Array, Array]:
        total = reward + discount * total
        return total, total

    _, returns = jax.lax.scan(back, rest, played.rewards, reverse=True)
    steps = counted_steps(discount, limit) if completes else limit
    counted = jax.tree.map(lambda x: x[:steps], (played.observations, played.actions, returns))
    judged = jax.lax.map(
        lambda one: judge(law_of(one[0], one[1]), one[2]), counted, batch_size=_STEPS
    )
    weight = jnp.where(cut, jnp.float32(discount) ** (limit - jnp.arange(steps)), 0.0)
    return Forecasts(counted[2], judged, weight, played.running[:steps])


def forecast_episodes(
    env: Environment, act: Act, law_of: LawOf, discount: float, completes: bool, keys: Key
) -> Forecasts:
    """Do so for one episode per key, in batches, so that any number fits in memory."""

    def one(key: Key) -> Forecasts:
        return forecast_episode(env, act, law_of, discount, completes, key)

    return jax.lax.map(one, keys, batch_size=_EPISODES)


@kept_programs
def forecast_program(
    agent: Agent, env: Environment, discount: float, completes: bool, episodes: int
) -> Callable[[Learned, Key], Forecasts]:
    """Return the compiled forecasts of an agent's policy."""

    def play(learned: Learned, key: Key) -> Forecasts:
        return forecast_episodes(
            env,
            lambda seen, elapsed: agent.greedy(learned, seen),
            lambda seen, action: agent.law(learned, seen, action),
            discount,
            completes,
            jax.random.split(key, episodes),
        )

    return jax.jit(play)
