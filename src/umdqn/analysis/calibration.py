"""Calibration: whether realised returns fall where the laws say, without knowing the truth.

If the law of (s, a) is right, the probability that it gives to returns below the realised one (the
probability integral transform, PIT) is uniform on [0, 1].
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import jax
import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Array
from matplotlib.figure import Figure

from umdqn.analysis.figures import COLOURS, save_figure
from umdqn.analysis.pits import Pits, hosted_pits, realised_pits, usable_steps
from umdqn.runs import Run
from umdqn.types import UmdqnError, check_count

LEVELS = (0.5, 0.8, 0.9, 0.95)
"""Central intervals whose coverage is reported."""
_BINS = 20
# Calibration draws its keys from here, apart from training and evaluation.
_STREAM = 2**31 - 2


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
    if run.agent.representation.gives == {"mean"}:
        raise UmdqnError(f"{run.config.label} learns expectations: there are no laws to calibrate")
    found = {seed: _pits(run, seed, episodes) for seed in run.seeds}
    by_seed = {seed: pits for seed, (pits, _) in found.items()}
    steps = max(pits.values.shape[1] for pits in by_seed.values())
    together = Pits(*(_joined(parts, steps) for parts in zip(*by_seed.values(), strict=True)))
    seeds = run.with_steps({str(seed): summary(pits) for seed, pits in by_seed.items()})
    cut = max(_cut_weight(run.config.discount, limit) for _, limit in found.values())
    return {**summary(together), "step": run.step, "cut_weight": cut, "seeds": seeds}


def _cut_weight(discount: float, limit: int | None) -> float:
    """How much what a time limit cuts off weighs at most, in the returns that are counted."""
    usable = usable_steps(discount, limit)
    return 0.0 if limit is None or usable is None else discount ** (limit - usable + 1)


def _joined(parts: tuple[np.ndarray, ...], steps: int) -> np.ndarray:
    padded = [np.pad(part, ((0, 0), (0, steps - part.shape[1]))) for part in parts]
    return np.concatenate(padded)


def _pits(run: Run, seed: int, episodes: int) -> tuple[Pits, int | None]:
    """Transforms of one seed's realised returns, and after how many steps episodes are cut."""
    agent, params, discount = run.agent, run.params[seed], run.config.discount
    network = agent.network(params)
    entry = run.config.environment()

    def cdf(observation: Array, action: Array, z: Array) -> Array:
        return network.law(observation, action).spread_cdf(z)

    if run.config.compiled:
        assert entry.compiled is not None
        key = jax.random.fold_in(jax.random.key(seed), _STREAM)
        act = partial(agent.greedy, params)
        pits = realised_pits(entry.compiled, act, cdf, discount, episodes, key)
        return pits, entry.compiled.time_limit
    sequence = np.random.SeedSequence([seed, _STREAM])
    env, policy = entry.hosted(1), run.policy(seed)
    try:
        return hosted_pits(
            env,
            lambda batch: policy.predict(batch)[0] - run.spec.first_action,
            jax.jit(jax.vmap(cdf)),
            discount,
            episodes,
            int(sequence.generate_state(1)[0]),
            run.config.evaluation.limit,
        )
    finally:
        env.close()


def draw_calibration(report: dict[str, Any], title: str, out: Path) -> None:
    """Draw the histogram of transforms and the coverage of central intervals."""
    save_figure(_figure(report, title), out)


def _figure(report: dict[str, Any], title: str) -> Figure:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), constrained_layout=True)
    edges = np.linspace(0, 1, _BINS + 1)
    for number, seed in enumerate(report["seeds"].values()):
        label = "each seed" if number == 0 else None
        left.stairs(np.array(seed["pit"]) * _BINS, edges, color=COLOURS[5], alpha=0.6, label=label)
    pit = np.array(report["pit"]) * _BINS
    left.stairs(pit, edges, color=COLOURS[0], linewidth=2, label="all seeds")
    left.axhline(1.0, color="black", linestyle=":", label="calibrated")
    left.legend(frameon=False)
    left.set(xlabel="probability below the realised return (PIT)", ylabel="density", xlim=(0, 1))
    left.set_ylim(bottom=0)
    levels = np.array(LEVELS)
    found = np.array([report["coverage"][f"{level:g}"] for level in LEVELS])
    errors = 2 * np.array([report["coverage_error"][f"{level:g}"] for level in LEVELS])
    right.plot([0, 1], [0, 1], color="black", linestyle=":", label="calibrated")
    right.errorbar(
        levels,
        found,
        yerr=errors,
        fmt="o",
        color=COLOURS[0],
        capsize=3,
        label="found, +- 2 standard errors",
    )
    right.set(xlabel="central interval of the law", ylabel="share of returns inside")
    right.set(xlim=(0.4, 1.02), ylim=(min(0.4, float((found - errors).min()) - 0.02), 1.02))
    right.legend(frameon=False)
    for axis in (left, right):
        axis.grid(alpha=0.25)
    figure.suptitle(title)
    return figure
