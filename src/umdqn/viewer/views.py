"""What is drawn and printed of the laws of a state, computed in one compiled program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from umdqn.agents.agent import Agent
from umdqn.agents.state import Learned
from umdqn.laws.law import Law
from umdqn.loops.compilation import kept_programs
from umdqn.specs import AnyArray
from umdqn.viewer.numbers import plain

ALPHAS = (0.05, 0.1, 0.25, 0.5)
"""Shares of worst returns whose mean is told."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Fractions whose quantiles are told."""
FRACTIONS = np.concatenate([[0.002, 0.005], np.arange(1, 100) / 100, [0.995, 0.998]])
"""Fractions at which quantile functions are drawn."""
_POINTS = 141
# Drawn is what holds all but this share of the mass on either side, and a margin.
_TAIL = 0.005
_MARGIN = 0.08
# Relative to where laws lie, the narrowest range that is drawn.
_NARROWEST = 1e-3


class Views(NamedTuple):
    """Curves and numbers of laws, on a leading axis of actions."""

    z: Float[AnyArray, "actions points"]
    """Where curves are known: evenly over the range, and where the mass of each law is."""
    pdf: Float[AnyArray, "actions points"]
    cdf: Float[AnyArray, "actions points"]
    qf: Float[AnyArray, "actions fractions"]
    mean: Float[AnyArray, "actions"]
    std: Float[AnyArray, "actions"]
    quantiles: Float[AnyArray, "actions named"]
    cvar: Float[AnyArray, "actions alphas"]
    low: Float[AnyArray, ""]
    high: Float[AnyArray, ""]


def views(laws: Law) -> Views:
    """Return the views of the laws of all actions."""
    qf = laws.quantile(jnp.asarray(FRACTIONS, jnp.float32))
    ends = laws.quantile(jnp.asarray([_TAIL, 1 - _TAIL], jnp.float32))
    low, high = jnp.min(ends[:, 0]), jnp.max(ends[:, 1])
    size = jnp.maximum(jnp.abs(low), jnp.abs(high))
    margin = _MARGIN * jnp.maximum(high - low, jnp.maximum(_NARROWEST * size, 1e-6))
    low, high = low - margin, high + margin
    even = jnp.broadcast_to(jnp.linspace(low, high, _POINTS), (qf.shape[0], _POINTS))
    z = jnp.sort(jnp.concatenate([even, jnp.clip(qf, low, high)], axis=1), axis=1)
    pdf, cdf = jax.vmap(lambda law, z: (law.pdf(z), law.cdf(z)))(laws, z)
    quantiles = laws.quantile(jnp.asarray(QUANTILES, jnp.float32))
    cvar = jnp.stack([laws.cvar(alpha) for alpha in ALPHAS], axis=-1)
    return Views(z, pdf, cdf, qf, laws.mean, laws.std, quantiles, cvar, low, high)


@kept_programs
def program(agent: Agent) -> Callable[[Learned, Any], tuple[Views, Array]]:
    """Compile views and scores of the laws of all actions, for one observation."""

    @jax.jit
    def run(learned: Learned, observation: Shaped[Array, "..."]) -> tuple[Views, Array]:
        laws = agent.laws(learned, observation)
        return views(laws.settled()), agent.scores(laws)

    return run


@kept_programs
def scores_program(agent: Agent) -> Callable[[Learned, Any], Array]:
    """Compile the scores of all actions for many observations, one after the other."""

    @jax.jit
    def run(learned: Learned, observations: Shaped[Array, "states ..."]) -> Array:
        return jax.lax.map(lambda seen: agent.scores(agent.laws(learned, seen)), observations)

    return run


def told(found: Views, actions: Sequence[str]) -> dict[str, Any]:
    """Return views as JSON data."""
    found = Views(*map(np.asarray, found))
    laws = [
        {
            "action": name,
            "z": plain(found.z[i]),
            "pdf": plain(found.pdf[i]),
            "cdf": plain(found.cdf[i]),
            "qf": plain(found.qf[i]),
            "mean": plain(found.mean[i], None),
            "std": plain(found.std[i], None),
            "quantiles": _named(QUANTILES, found.quantiles[i]),
            "cvar": _named(ALPHAS, found.cvar[i]),
        }
        for i, name in enumerate(actions)
    ]
    bounds = [plain(found.low, None), plain(found.high, None)]
    return {"laws": laws, "fractions": FRACTIONS.tolist(), "range": bounds}


def _named(names: Sequence[float], values: AnyArray) -> dict[str, Any]:
    return {f"{name:g}": plain(value, None) for name, value in zip(names, values, strict=True)}
