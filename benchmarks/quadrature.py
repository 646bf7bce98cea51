"""How exact the quadrature is: CDFs of a trained run against integrals in double precision.

`python benchmarks/quadrature.py RUN` looks at every state and action of the grid world and at 401
returns over the domain; `--intervals` evaluates the same network with another number of cells. The
referee cuts the integrand at its kinks and integrates each piece with 16 Gauss-Legendre nodes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from umdqn.envs.grid_world import ACTIONS, STATES
from umdqn.laws.flow import FlowLaw
from umdqn.networks.umnn import Umnn
from umdqn.runs.build import build_agent
from umdqn.runs.fields import override
from umdqn.runs.run import load

POINTS = np.linspace(-1, 1, 401)
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


def referee(umnn: Umnn, features: np.ndarray, action: int) -> np.ndarray:
    """`G` at the points, in double precision."""
    umnn = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), umnn)
    context = features @ umnn.context.weight + umnn.context.bias
    kinks = -context[umnn.point != 0] / umnn.point[umnn.point != 0]
    inner = np.abs(kinks) < 1
    edges = np.unique(np.concatenate([POINTS, kinks[inner]]))
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    t = middle[:, None] + half[:, None] * NODES
    hidden = np.maximum(t[..., None] * umnn.point + context, 0)
    logits = hidden @ umnn.output.weight[:, action] + umnn.output.bias[action]
    integrand = np.where(logits > 0, logits + 1, np.exp(np.minimum(logits, 0)))
    area = np.concatenate([[0], np.cumsum(half * (integrand @ WEIGHTS))])
    x = features
    for layer in umnn.conditioner.layers[:-1]:
        x = np.maximum(x @ layer.weight + layer.bias, 0)
    last = umnn.conditioner.layers[-1]
    offset, scale = np.split(x @ last.weight + last.bias, 2)
    zero = np.interp(0.0, edges, area)
    at_points = area[np.searchsorted(edges, POINTS)]
    return np.exp(scale[action]) * (at_points - zero) + offset[action]


def main() -> None:
    """Print the largest error over states, actions, points and seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--intervals", type=int)
    options = parser.parse_args()
    run = load(options.run)
    if options.intervals:
        fields = {"representation.intervals": options.intervals}
        run.agent = build_agent(override(run.config, fields))
    every = []
    for seed, learned in run.learned.items():
        network = run.agent.network(learned.params)
        for state in STATES:
            observation = jnp.asarray(state, jnp.float32)
            features = np.asarray(network.torso(observation), np.float64)
            laws = run.law(state, seed)
            for action in range(len(ACTIONS)):
                law = laws[action]
                assert isinstance(law, FlowLaw), "only laws with a CDF of their own"
                z = law.support.from_unit(jnp.asarray(POINTS, jnp.float32))
                height = jnp.asarray(referee(network.head.umnn, features, action), jnp.float32)
                error = np.abs(np.asarray(law.cdf(z)) - np.asarray(law.link.cdf(height))).max()
                every.append(float(error))
    good = np.mean(np.array(every) <= 1e-4)
    print(
        f"largest error of each of {len(every)} laws: median {np.median(every):.1e}, "
        f"maximum {max(every):.1e}, within 1e-4 for {good:.1%}"
    )


if __name__ == "__main__":
    main()
