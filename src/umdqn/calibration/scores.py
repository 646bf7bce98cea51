"""Scores of forecasts: PIT, coverage, bias, CRPS, each with its sampling error over episodes.

If the law of (s, a) is right, the probability that it gives to returns below the realised one (the
probability integral transform, PIT) is uniform on [0, 1]. Steps of one episode are dependent:
standard errors are computed over episodes.

Returns and laws are compared at a precision of `TOLERANCE` of the returns' size (their root mean
square). Where the 90% interval of a law is narrower than twice that, the law is nearly a point and
the PIT of a return beside it a matter of rounding. If the return lies within the tolerance of the
interval, the two cannot be told apart and the PIT is drawn uniformly, as that of a right law would
be (a randomised PIT); else it stays what it is, 0 or 1.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float

from umdqn.calibration.forecasts import Forecasts, Judged
from umdqn.calibration.verdicts import verdict

LEVELS = (0.5, 0.8, 0.9, 0.95)
"""Central intervals whose coverage is reported."""
BINS = 20
"""Bins of the histogram of transforms."""
TOLERANCE = 1e-3
"""Precision of the comparison, relative to the root mean square of realised returns."""
_GROUPS = 10


def report(by_seed: dict[int, Forecasts]) -> dict[str, Any]:
    """Return the scores of all seeds together, and per seed."""
    together = pooled(list(by_seed.values()))
    seeds = {str(seed): summary(forecasts) for seed, forecasts in by_seed.items()}
    return {**summary(together), "seeds": seeds}


def pooled(parts: list[Forecasts]) -> Forecasts:
    """Return the episodes of several forecasts as one, padded to the longest."""
    steps = max(part.valid.shape[1] for part in parts)

    def joined(*arrays: np.ndarray) -> np.ndarray:
        return np.concatenate([np.pad(a, ((0, 0), (0, steps - a.shape[1]))) for a in arrays])

    return jax.tree.map(joined, *parts)


def summary(found: Forecasts) -> dict[str, Any]:
    """Return all scores of forecasts, and the verdict on them."""
    valid = np.asarray(found.valid)
    judged = Judged(*(np.asarray(part, np.float64) for part in found.judged))
    returns, weight = np.asarray(found.realised, np.float64), np.asarray(found.weight)[valid]
    realised, missed = returns[valid], np.asarray(returns - judged.mean)
    tolerance = TOLERANCE * float(np.sqrt(np.mean(realised**2)))
    pit, points = _randomised(judged, returns, tolerance)
    parts = {"below_median": pit < 0.5, "bias": missed, "crps": np.asarray(judged.crps)}
    means = {name: _over_episodes(values, valid) for name, values in parts.items()}
    reference = _half_difference(realised)
    edge = float(judged.edge[valid].mean())
    scores = {
        **_coverage(pit, valid),
        "pit": (np.histogram(pit[valid], BINS, (0.0, 1.0))[0] / valid.sum()).tolist(),
        "ks": _distance_from_uniform(pit[valid]),
        "groups": _groups(Judged(*(np.asarray(part)[valid] for part in judged)), realised),
        **{name: mean for name, (mean, _) in means.items()},
        **{f"{name}_error": error for name, (_, error) in means.items()},
        "predicted_mean": float(judged.mean[valid].mean()),
        "realised_mean": float(realised.mean()),
        "realised_std": float(realised.std()),
        "residual_std": float(np.std(missed[valid])),
        "interval_90": float((judged.high - judged.low)[valid].mean()),
        "crps_reference": reference,
        "crps_skill": 1 - means["crps"][0] / reference if reference > tolerance else None,
        "tolerance": tolerance,
        "point_like": float(points[valid].mean()),
        "edge_mass": edge if np.isfinite(edge) else None,
        "completed": float((weight > 0).mean()),
        "cut_weight": float(weight.mean()),
        "returns": int(valid.sum()),
        "episodes": len(valid),
        "effective_episodes": _effective(valid),
        "steps_counted": valid.shape[1],
    }
    return scores | {"verdict": verdict(scores)}


def _randomised(
    judged: Judged, realised: Float[np.ndarray, "episodes steps"], tolerance: float
) -> tuple[Float[np.ndarray, "episodes steps"], Bool[np.ndarray, "episodes steps"]]:
    """Return the PITs, drawn where laws are nearly points, and which laws are."""
    low, high = np.asarray(judged.low), np.asarray(judged.high)
    points = high - low < 2 * tolerance
    off = np.abs(realised - np.clip(realised, low, high))
    drawn = np.random.default_rng(0).uniform(size=points.shape)
    return np.where(points & (off <= tolerance), drawn, judged.pit), points


def _coverage(
    pit: Float[np.ndarray, "episodes steps"], valid: Bool[np.ndarray, "episodes steps"]
) -> dict[str, Any]:
    found = {
        f"{level:g}": _over_episodes(np.abs(pit - 0.5) <= level / 2, valid) for level in LEVELS
    }
    return {
        "coverage": {level: share for level, (share, _) in found.items()},
        "coverage_error": {level: error for level, (_, error) in found.items()},
    }


def _over_episodes(values: np.ndarray, valid: np.ndarray) -> tuple[float, float]:
    """Return the mean over all steps that count, and its standard error over episodes."""
    count, episodes = valid.sum(), len(valid)
    mean = np.sum(values, where=valid) / count
    off = np.sum(values - mean, axis=1, where=valid)
    error = np.sqrt(np.sum(off**2) * episodes / (episodes - 1)) / count
    return float(mean), float(error)


def _effective(valid: np.ndarray) -> float:
    """Return how many episodes of equal length would tell as much (Kish's sample size)."""
    counts = valid.sum(axis=1).astype(np.float64)
    return float(counts.sum() ** 2 / np.sum(counts**2))


def _groups(judged: Judged, realised: np.ndarray) -> list[dict[str, float]]:
    """Sort returns by predicted mean into groups of equal size; describe laws and returns of each.

    Intervals are the mean central 90% interval of the laws, and the central 90% of the returns.
    """
    order = np.argsort(np.asarray(judged.mean), kind="stable")
    found = []
    for rows in np.array_split(order, min(_GROUPS, len(order))):
        low, high = np.quantile(realised[rows], [0.05, 0.95])
        found.append(
            {
                "predicted": float(judged.mean[rows].mean()),
                "predicted_low": float(judged.low[rows].mean()),
                "predicted_high": float(judged.high[rows].mean()),
                "realised": float(realised[rows].mean()),
                "realised_low": float(low),
                "realised_high": float(high),
            }
        )
    return found


def _distance_from_uniform(pit: np.ndarray) -> float:
    """Return the Kolmogorov-Smirnov distance."""
    values, count = np.sort(pit), len(pit)
    ranks = np.arange(1, count + 1) / count
    return float(np.maximum(np.abs(ranks - values), np.abs(ranks - 1 / count - values)).max())


def _half_difference(realised: np.ndarray) -> float:
    """Return `E|G - G'| / 2`: the mean CRPS of one law for all states, that of all returns."""
    values, count = np.sort(realised), len(realised)
    ranks = 2 * np.arange(1, count + 1) - count - 1
    return float(np.sum(ranks * values) / count**2)
