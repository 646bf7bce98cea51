"""Distances of learned laws from the exact laws of finite MDPs."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from umdqn.agents.agent import Agent
from umdqn.agents.state import Learned
from umdqn.analysis.accuracy import WORST, Distances, Numbers, normalised, summarise
from umdqn.analysis.dynamic_programming import exact_laws
from umdqn.analysis.floor import Transitions, visits
from umdqn.analysis.planning import optimal_actions
from umdqn.analysis.tabulated import ExactLaws
from umdqn.envs.finite import FiniteMdp
from umdqn.laws.atoms import midpoints
from umdqn.laws.law import Law
from umdqn.loops.acting import greedy_program
from umdqn.loops.compilation import kept_programs

# Fractions at which quantile functions are compared.
_FRACTIONS = 1_000


class _Found(NamedTuple):
    """Views of learned laws, on leading axes [states, actions]."""

    quantiles: Float[Array, "*laws fractions"]
    mean: Float[Array, "*laws"]
    std: Float[Array, "*laws"]
    cvar: Float[Array, "*laws"]
    scores: Float[Array, "*laws"]


def finite_accuracy(
    agent: Agent,
    learned: Learned,
    mdp: FiniteMdp,
    discount: float,
    transitions: Transitions | None = None,
) -> Numbers:
    """Return the numbers of `umdqn accuracy`, for one seed.

    Laws are compared with those of the agent's own policy. States are those that an agent
    can act in: terminal states, and states that no episode reaches, are left out. What was learned
    from `transitions` is also scored over the pairs of state and action that occur in them.
    """
    states = np.flatnonzero(mdp.visited)
    seen = jnp.asarray(mdp.observations[states])
    found = jax.tree.map(np.asarray, _views_program(agent)(learned, seen))
    actions = greedy_policy(agent, learned, mdp)
    greedy = actions[states]
    truth = _truth(mdp, tuple(actions.tolist()), discount)
    measured = _distances(agent, learned, seen, found, truth, states)
    optimal = optimal_actions(mdp, discount)[states, greedy]
    numbers = summarise(measured, truth.std[states], float(truth.error[states].mean())) | {
        "optimal_actions": int(optimal.sum()),
        "states": len(states),
    }
    if transitions is not None:
        tried = visits(transitions, mdp)[states] > 0
        numbers["normalised_w1_tried"] = normalised(measured.w1[tried], truth.std[states])
        numbers["untried"] = int((~tried).sum())
    return numbers


def greedy_policy(agent: Agent, learned: Learned, mdp: FiniteMdp) -> np.ndarray:
    """Return the action of the agent's policy in every state; 0 where it never acts."""
    states = np.flatnonzero(mdp.visited)
    actions = np.zeros(mdp.num_states, np.int64)
    actions[states] = np.asarray(greedy_program(agent)(learned, mdp.observations[states]))
    return actions


# The same policy is scored for several agents and checkpoints.
@lru_cache(maxsize=8)
def _truth(mdp: FiniteMdp, actions: tuple[int, ...], discount: float) -> ExactLaws:
    return exact_laws(mdp, np.array(actions), discount)


def _distances(
    agent: Agent,
    learned: Learned,
    seen: Array,
    found: _Found,
    truth: ExactLaws,
    states: np.ndarray,
) -> Distances:
    """Return the distances of some states: W1 from quantiles, the others from CDFs.

    CDFs are compared where either law has mass: at the quantiles of both.
    """
    exact = truth.quantile(_taus())[states]
    z = np.sort(np.concatenate([exact, found.quantiles], axis=-1), axis=-1)
    every = np.zeros((*truth.mean.shape, z.shape[-1]))
    every[states] = z
    cdfs = np.asarray(_cdf_program(agent)(learned, seen, jnp.asarray(z, jnp.float32)))
    gap = np.abs(cdfs - truth.cdf_of_each(every)[states])
    squares = np.sum(gap[..., :-1] ** 2 * np.diff(z, axis=-1), axis=-1)
    return Distances(
        w1=np.abs(exact - found.quantiles).mean(axis=-1),
        cramer=np.sqrt(squares),
        ks=gap.max(axis=-1),
        mean_error=np.abs(found.mean - truth.mean[states]),
        std_error=np.abs(found.std - truth.std[states]),
        cvar_error=np.abs(found.cvar - truth.cvar(WORST)[states]),
        scores=np.asarray(found.scores),
    )


def _taus() -> np.ndarray:
    return (np.arange(_FRACTIONS) + 0.5) / _FRACTIONS


@kept_programs
def _views_program(agent: Agent) -> Callable[[Learned, Array], _Found]:
    def views(laws: Law) -> _Found:
        quantiles = laws.quantile(midpoints(_FRACTIONS))
        return _Found(quantiles, laws.mean, laws.std, laws.cvar(WORST), agent.scores(laws))

    @jax.jit
    def run(learned: Learned, observations: Array) -> _Found:
        # One state at a time: quantile functions on many fractions take much memory.
        return jax.lax.map(lambda seen: views(agent.laws(learned, seen)), observations)

    return run


@kept_programs
def _cdf_program(agent: Agent) -> Callable[[Learned, Array, Array], Array]:
    def cdfs(law: Law, z: Array) -> Array:
        return law.cdf(z)

    @jax.jit
    def run(learned: Learned, observations: Array, z: Array) -> Array:
        return jax.lax.map(
            lambda pair: jax.vmap(cdfs)(agent.laws(learned, pair[0]), pair[1]), (observations, z)
        )

    return run
