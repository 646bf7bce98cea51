"""Calibration: compare laws with realised returns, without knowing the exact laws.

If the law of (s, a) is right, the probability that it gives to returns below the realised one (the
probability integral transform, PIT) is uniform on [0, 1].
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from umdqn.analysis.pits import Pits, hosted_pits, realised_pits, usable_steps
from umdqn.errors import UmdqnError, check_count
from umdqn.loops.acting import greedy_program
from umdqn.runs.build import environment, is_compiled
from umdqn.runs.run import Run

LEVELS = (0.5, 0.8, 0.9, 0.95)
"""Central intervals whose coverage is reported."""
BINS = 20
"""Bins of the histogram of transforms."""
# Separates the randomness of calibration from that of training and evaluation.
_STREAM = 2**31 - 2


def summary(pits: Pits) -> dict[str, Any]:
    """Return histogram of the transforms, coverage of central intervals, distance from uniform.

    Steps of one episode are dependent: standard errors are computed over episodes.
    """
    values = np.sort(pits.values[pits.valid])
    counts, _ = np.histogram(values, bins=BINS, range=(0.0, 1.0))
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
    """Return the calibration of a run's laws under its greedy policies: all seeds, and per seed."""
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
    """Return the largest discount of rewards that a time limit cuts off counted returns."""
    usable = usable_steps(discount, limit)
    return 0.0 if limit is None or usable is None else discount ** (limit - usable + 1)


def _joined(parts: tuple[np.ndarray, ...], steps: int) -> np.ndarray:
    padded = [np.pad(part, ((0, 0), (0, steps - part.shape[1]))) for part in parts]
    return np.concatenate(padded)


def _pits(run: Run, seed: int, episodes: int) -> tuple[Pits, int | None]:
    """Return the transforms of one seed, and after how many steps episodes are truncated."""
    agent, learned, discount = run.agent, run.learned[seed], run.config.discount
    entry = environment(run.config)

    def cdf(observation: Array, action: Array, z: Array) -> Array:
        return agent.law(learned, observation, action).spread_cdf(z)

    if is_compiled(run.config):
        assert entry.compiled is not None
        key = jax.random.fold_in(jax.random.key(seed), _STREAM)
        pits = realised_pits(
            entry.compiled,
            lambda seen, elapsed: agent.greedy(learned, seen),
            cdf,
            discount,
            episodes,
            key,
        )
        return pits, entry.compiled.time_limit
    sequence = np.random.SeedSequence([seed, _STREAM])
    greedy = greedy_program(agent)
    env = entry.hosted(1)
    try:
        return hosted_pits(
            env,
            lambda batch: greedy(learned, batch),
            jax.jit(jax.vmap(cdf)),
            discount,
            episodes,
            int(sequence.generate_state(1)[0]),
            run.config.evaluation.limit,
        )
    finally:
        env.close()
