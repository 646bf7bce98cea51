"""Calibration: whether realised returns fall where the laws say, without knowing the truth.

If the law of (s, a) is right, the probability that it gives to returns below the realised one (the
probability integral transform, PIT) is uniform on [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree
from matplotlib.figure import Figure

from umdqn.analysis.figures import COLOURS, save_figure
from umdqn.envs import Environment
from umdqn.runs import Run
from umdqn.types import Key, UmdqnError, check_count

LEVELS = (0.5, 0.8, 0.9, 0.95)
"""Central intervals whose coverage is reported."""
_BINS = 20
# What a time limit cuts off must weigh less than this.
_NEGLIGIBLE = 1e-3
_BATCH = 256
# Calibration draws its keys from here, apart from training and evaluation.
_STREAM = 2**31 - 2

Cdf = Callable[[Float[Array, "..."], Int[Array, ""], Float[Array, ""]], Float[Array, ""]]
"""Probability of a return of at most z, from an observation, an action and z."""


class Pits(NamedTuple):
    """Transforms of realised returns, one a step, and which steps count."""

    values: Float[np.ndarray, "episodes steps"]
    valid: Bool[np.ndarray, "episodes steps"]


def usable_steps(discount: float, time_limit: int) -> int:
    """Steps of an episode after which what the time limit cuts off is negligible; at least one.

    Steps are left out by their number alone: choosing by how an episode ended would distort the
    returns. Where even the first step's return is cut, `cut_weight` in the report says how much
    the part that is missing weighs.
    """
    needed = math.ceil(math.log(_NEGLIGIBLE) / math.log(discount)) if discount > 0 else 0
    return max(time_limit - needed, 1)


def realised_pits(
    env: Environment,
    act: Callable[[Float[Array, "..."]], Int[Array, ""]],
    cdf: Cdf,
    discount: float,
    episodes: int,
    key: Key,
) -> Pits:
    """Play episodes of a policy and transform the discounted return of every usable step."""
    limit = env.spec.time_limit
    steps = usable_steps(discount, limit)

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


def summary(pits: Pits) -> dict[str, Any]:
    """Histogram of the transforms, coverage of central intervals, and distance from uniform.

    Steps of one episode depend on each other; the standard errors take the episode as the unit.
    """
    values = np.sort(pits.values[pits.valid])
    counts, _ = np.histogram(values, bins=_BINS, range=(0.0, 1.0))
    ranks = np.arange(1, len(values) + 1) / len(values)
    coverage, errors = {}, {}
    for level in LEVELS:
        inside = (np.abs(pits.values - 0.5) <= level / 2) & pits.valid
        share = inside.sum() / pits.valid.sum()
        off = inside.sum(axis=1) - share * pits.valid.sum(axis=1)
        coverage[f"{level:g}"] = float(share)
        errors[f"{level:g}"] = float(np.sqrt(np.sum(off**2)) / pits.valid.sum())
    distance = np.maximum(np.abs(ranks - values), np.abs(ranks - 1 / len(values) - values)).max()
    return {
        "coverage": coverage,
        "coverage_error": errors,
        "pit": (counts / counts.sum()).tolist(),
        "ks": float(distance),
        "returns": len(values),
        "episodes": len(pits.valid),
    }


def calibration_report(run: Run, episodes: int) -> dict[str, Any]:
    """Calibration of a run's laws under its own greedy policies: all seeds, and per seed."""
    check_count("episodes", episodes, least=2)
    agent = run.agent
    if agent.representation.gives == {"mean"}:
        raise UmdqnError(f"{run.config.label} learns expectations: there are no laws to calibrate")
    limit = agent.spec.time_limit
    last = usable_steps(run.config.discount, limit) - 1
    by_seed = {}
    for seed, params in run.params.items():
        network = agent.network(params)

        def cdf(observation: Array, action: Array, z: Array, network: Any = network) -> Array:
            return network.law(observation, action).spread_cdf(z)

        def act(observation: Array, params: PyTree = params) -> Array:
            return agent.greedy(params, observation)

        key = jax.random.fold_in(jax.random.key(seed), _STREAM)
        environment = run.config.environment()
        by_seed[seed] = realised_pits(environment, act, cdf, run.config.discount, episodes, key)
    together = Pits(*(np.concatenate(parts) for parts in zip(*by_seed.values(), strict=True)))
    seeds = {str(seed): summary(pits) for seed, pits in by_seed.items()}
    cut = run.config.discount ** (limit - last)
    return {**summary(together), "step": run.step, "cut_weight": cut, "seeds": seeds}


def draw_calibration(report: dict[str, Any], title: str, out: Path) -> None:
    """Draw the histogram of transforms and the coverage of central intervals."""
    save_figure(_figure(report, title), out)


def _figure(report: dict[str, Any], title: str) -> Figure:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), constrained_layout=True)
    edges = np.linspace(0, 1, _BINS + 1)
    for seed in report["seeds"].values():
        left.stairs(np.array(seed["pit"]) * _BINS, edges, color=COLOURS[5], alpha=0.6)
    left.stairs(np.array(report["pit"]) * _BINS, edges, color=COLOURS[0], linewidth=2)
    left.axhline(1.0, color="black", linestyle=":")
    left.set(xlabel="probability below the realised return (PIT)", ylabel="density", xlim=(0, 1))
    left.set_ylim(bottom=0)
    levels = np.array(LEVELS)
    found = np.array([report["coverage"][f"{level:g}"] for level in LEVELS])
    errors = 2 * np.array([report["coverage_error"][f"{level:g}"] for level in LEVELS])
    right.plot([0, 1], [0, 1], color="black", linestyle=":", label="calibrated")
    right.errorbar(
        levels, found, yerr=errors, fmt="o", color=COLOURS[0], capsize=3, label="found (2 errors)"
    )
    right.set(xlabel="central interval of the law", ylabel="share of returns inside")
    right.set(xlim=(0.4, 1), ylim=(0.4, 1))
    right.legend(frameon=False)
    for axis in (left, right):
        axis.grid(alpha=0.25)
    figure.suptitle(title)
    return figure
