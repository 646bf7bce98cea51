"""Statistics over few runs, with bootstrap intervals.

Definitions of Agarwal et al., "Deep reinforcement learning at the edge of the statistical
precipice" (2021). Scores are arrays [runs, tasks], normalised where tasks are combined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from umdqn.errors import UmdqnError, check

FEW = 5
"""Number of runs below which bootstrap intervals are too narrow to be shown."""
REPETITIONS = 2_000
LEVEL = 0.95
_TRIMMED = 0.25
_AT_ONCE = 50

Statistic = Callable[[np.ndarray], np.ndarray]
"""Maps scores [..., runs, tasks] to numbers [...]."""


class Estimate(NamedTuple):
    """A statistic with its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def mean(scores: np.ndarray) -> np.ndarray:
    """Mean over tasks of the mean over runs."""
    return np.asarray(scores.mean(axis=(-2, -1)))


def median(scores: np.ndarray) -> np.ndarray:
    """Median over tasks of the mean over runs."""
    return np.asarray(np.median(scores.mean(axis=-2), axis=-1))


def iqm(scores: np.ndarray) -> np.ndarray:
    """Interquartile mean: that of the middle half of all runs of all tasks."""
    pooled = np.sort(scores.reshape(*scores.shape[:-2], -1), axis=-1)
    cut = int(_TRIMMED * pooled.shape[-1])
    return np.asarray(pooled[..., cut : pooled.shape[-1] - cut].mean(axis=-1))


def optimality_gap(scores: np.ndarray, optimum: float = 1.0) -> np.ndarray:
    """Mean distance below an optimum; scores above it count as the optimum."""
    return np.asarray(optimum - np.minimum(scores, optimum).mean(axis=(-2, -1)))


STATISTICS: dict[str, Statistic] = {
    "IQM": iqm,
    "mean": mean,
    "median": median,
    "optimality gap": optimality_gap,
}


def _checked(scores: np.ndarray) -> np.ndarray:
    scores = np.asarray(scores, np.float64)
    check(scores.ndim == 2 and scores.size > 0, "scores", scores.shape, "an array [runs, tasks]")
    if not np.isfinite(scores).all():
        raise UmdqnError("scores must be finite numbers")
    return scores


def resampled(scores: np.ndarray, repetitions: int, rng: np.random.Generator) -> np.ndarray:
    """Draw runs with replacement, separately for each task: [repetitions, runs, tasks]."""
    runs, tasks = scores.shape
    drawn = rng.integers(runs, size=(repetitions, runs, tasks))
    return scores[drawn, np.arange(tasks)]


def estimate(
    scores: np.ndarray,
    statistic: Statistic,
    repetitions: int = REPETITIONS,
    level: float = LEVEL,
    seed: int = 0,
) -> Estimate:
    """Return a statistic with its stratified bootstrap interval (percentiles)."""
    scores = _checked(scores)
    values = statistic(resampled(scores, repetitions, np.random.default_rng(seed)))
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(float(statistic(scores)), float(low), float(high))


def performance_profile(scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Return the share of all runs of all tasks with a score above each threshold."""
    pooled = np.asarray(scores)[..., None] > thresholds
    return pooled.mean(axis=(-3, -2))


def profile_band(
    scores: np.ndarray, thresholds: np.ndarray, repetitions: int = REPETITIONS, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pointwise bootstrap interval of a performance profile."""
    again = resampled(_checked(scores), repetitions, np.random.default_rng(seed))
    profiles = performance_profile(again, thresholds)
    low, high = np.quantile(profiles, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return low, high


def _improvement(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Mean over tasks of the probability that a run of the first beats one of the second."""
    ours, theirs = first[..., :, None, :], second[..., None, :, :]
    wins = (ours > theirs) + 0.5 * (ours == theirs)
    return np.asarray(wins.mean(axis=(-3, -2, -1)))


def probability_of_improvement(
    first: np.ndarray, second: np.ndarray, repetitions: int = REPETITIONS, seed: int = 0
) -> Estimate:
    """Return how probably the first algorithm is better on a random task; ties count half."""
    first, second = _checked(first), _checked(second)
    same = first.shape[1] == second.shape[1]
    check(same, "scores", (first.shape, second.shape), "the same tasks for both")
    rng = np.random.default_rng(seed)
    again = [resampled(scores, repetitions, rng) for scores in (first, second)]
    # All pairs of runs of a few repetitions at a time, to bound memory.
    pieces = [np.array_split(scores, -(-repetitions // _AT_ONCE)) for scores in again]
    values = np.concatenate([_improvement(*pair) for pair in zip(*pieces, strict=True)])
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(float(_improvement(first, second)), float(low), float(high))


class Curve(NamedTuple):
    """A statistic along training, with its band."""

    steps: np.ndarray
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


def moving_average(values: np.ndarray, window: int) -> np.ndarray:
    """Return the mean of `window` values around each one along the last axis.

    Near both ends as many fewer on either side, so that no curve is shifted: a straight line stays
    as it is, and the first and the last value are those that were measured.
    """
    check(window >= 1 and window % 2 == 1, "window", window, "an odd number of at least 1")
    sums = np.cumsum(np.concatenate([np.zeros_like(values[..., :1]), values], axis=-1), axis=-1)
    count = values.shape[-1]
    places = np.arange(count)
    reach = np.minimum(window // 2, np.minimum(places, count - 1 - places))
    return (sums[..., places + reach + 1] - sums[..., places - reach]) / (2 * reach + 1)


def sample_efficiency(
    steps: Sequence[int] | np.ndarray,
    scores: np.ndarray,
    statistic: Statistic = iqm,
    window: int = 1,
    repetitions: int = REPETITIONS,
    seed: int = 0,
) -> Curve:
    """Return a statistic of scores [runs, tasks, steps] at every step, smoothed, with its band."""
    smooth = moving_average(np.asarray(scores, np.float64), window)
    estimates = [
        estimate(smooth[..., i], statistic, repetitions, seed=seed) for i in range(smooth.shape[-1])
    ]
    return Curve(np.asarray(steps), *(np.array(part) for part in zip(*estimates, strict=True)))
