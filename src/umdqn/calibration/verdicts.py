"""The verdict on forecasts: one plain sentence.

A fault is named if it matters (the constants below) and if sampling does not explain it: episodes
are the independent unit, and a share is taken to be at least as uncertain as if all steps of an
episode agreed.
"""

from __future__ import annotations

import math
from typing import Any

# Standard errors that a fault must exceed, and how far off matters.
_SIGMAS = 3.0
_COVERAGE_OFF = {"0.9": 0.05, "0.8": 0.05, "0.95": 0.05, "0.5": 0.1}
_MEDIAN_OFF = 0.1
# A Gaussian that is off by a quarter of its spread has 60% of returns on one side of its median.
_BIAS_OFF = 0.25
# Returns that vary, or miss predictions, by less than this share of their size count as known.
_DETERMINISTIC = 0.01
# Intervals wider than this share of the returns' size are too wide for returns that are known.
_WIDE = 0.1
_EDGE_MASS = 0.05
# Where all states have the same law, sampling makes the skill of the right one a little negative.
_UNSKILLED = 0.05
# Weights of the forecast beyond a time limit that are worth a remark, and that hide errors.
_CUT, _MOSTLY_CUT = 0.1, 0.5
# Width of a Gaussian's 90% interval in standard deviations.
_GAUSSIAN_90 = 3.29


def verdict(scores: dict[str, Any]) -> str:
    """Return one sentence on scores of forecasts."""
    numbers = (scores["bias"], scores["crps"], scores["interval_90"])
    if not all(map(math.isfinite, numbers)):
        return "no verdict: laws or returns are not finite numbers"
    main = (
        _known_returns(scores)
        or _location_fault(scores)
        or _spread_fault(scores)
        or _no_fault(scores)
    )
    return main + _remarks(scores)


def compared(scores: dict[str, Any]) -> str:
    """Say what was compared, in one sentence."""
    text = (
        f"compared: laws of the policy at the first {scores['steps_counted']:,} steps of "
        f"{scores['episodes']:,} episodes with {scores['returns']:,} realised returns"
    )
    if scores["completed"]:
        text += (
            f"; {_percent(scores['completed'])} of them are cut by a time limit and completed "
            f"by a draw from the law there, of weight {_percent(scores['cut_weight'])} on average"
        )
    return text


def _known_returns(scores: dict[str, Any]) -> str | None:
    """Judge returns that are nearly deterministic by means alone: their PITs are noise."""
    mean, spread = scores["realised_mean"], scores["realised_std"]
    size = math.hypot(mean, spread)
    missed = math.hypot(scores["residual_std"], scores["bias"])
    if min(spread, missed) > _DETERMINISTIC * size:
        return None
    if size == 0:
        return f"every realised return is 0 here: the laws' mean is {scores['predicted_mean']:.3g}"
    varied = f" ({mean:.4g} +- {spread:.2g})" if spread <= _DETERMINISTIC * size else ""
    begin, off = f"returns are nearly deterministic here{varied}:", abs(scores["bias"]) / size
    if off > _DETERMINISTIC:
        return f"{begin} the laws are {_direction(scores)} by {_off(scores)} ({off:.1%})"
    if scores["interval_90"] > _WIDE * size:
        wide = f"90% intervals are {scores['interval_90']:.3g} wide"
        return f"{begin} the laws' mean is right within {off:.1%}, but they are too wide: {wide}"
    return (
        f"{begin} the laws' mean is right within {max(off, 1e-3):.1%}, and "
        f"90% intervals are {scores['interval_90']:.2g} wide"
    )


def _location_fault(scores: dict[str, Any]) -> str | None:
    bias, below = scores["bias"], scores["below_median"]
    spread = max(scores["interval_90"] / _GAUSSIAN_90, scores["residual_std"])
    biased = abs(bias) > max(_BIAS_OFF * spread, _sigmas(scores) * scores["bias_error"])
    error = _share_error(scores, 0.5, scores["below_median_error"])
    tilted = abs(below - 0.5) > max(_MEDIAN_OFF, error)
    if not (biased or tilted):
        return None
    # Positive: more returns than half lie above the median.
    agree = (bias > 0) == (below < 0.5)
    side = f"fall {'below' if below > 0.5 else 'above'} the law's median"
    fell = f"realised returns {side} {_percent(max(below, 1 - below))} of the time"
    covers = f"90% intervals cover {_percent(scores['coverage']['0.9'])}"
    if agree:
        return f"{_direction(scores)} by {_off(scores)}: {fell}, and {covers}"
    if biased:
        return f"mean {'too low' if bias > 0 else 'too high'} by {_off(scores)}, though {fell}"
    return f"wrong in shape: {fell}, though means differ by {_off(scores)} only, and {covers}"


def _spread_fault(scores: dict[str, Any]) -> str | None:
    for level, matters in _COVERAGE_OFF.items():
        off = scores["coverage"][level] - float(level)
        error = _share_error(scores, float(level), scores["coverage_error"][level])
        # Rounding must not decide whether 95% differs from 90% by more than 5%.
        if abs(off) > max(matters + 1e-6, error):
            kind = "too wide" if off > 0 else "too narrow"
            found = f"cover {_percent(scores['coverage'][level])} of realised returns"
            return f"{kind}: {_percent(float(level))} intervals {found}"
    return None


def _no_fault(scores: dict[str, Any]) -> str:
    share = f"90% intervals cover {_percent(scores['coverage']['0.9'])} of realised returns"
    error = _share_error(scores, 0.9, scores["coverage_error"]["0.9"])
    if error > 2 * _COVERAGE_OFF["0.9"]:
        few = f"{scores['episodes']:,} episodes are too few to tell"
        return f"no fault found, but {few}: {share}, +- {_percent(error)}"
    bias = f"the mean is off by {_off(scores)} +- {2 * scores['bias_error']:.2g}"
    return f"calibrated: {share}, and {bias}"


def _remarks(scores: dict[str, Any]) -> str:
    text, skill, edge = "", scores["crps_skill"], scores["edge_mass"]
    if skill is not None and skill < -_UNSKILLED:
        text += f"; worse than one law for all states (CRPS skill {skill:.2f})"
    if edge is not None and edge > _EDGE_MASS:
        text += f"; {_percent(edge)} of the mass sits at an edge of the support"
    weight = scores["cut_weight"]
    if weight > _CUT:
        hides = ", which hides most errors" if weight > _MOSTLY_CUT else ""
        text += (
            f"; {_percent(weight)} of a return lies beyond the time limit, where the law's own "
            f"forecast stands in{hides}"
        )
    return text


def _sigmas(scores: dict[str, Any]) -> float:
    """Standard errors that count as significant: more, the fewer episodes estimate them."""
    return _SIGMAS * (1 + 2 / max(scores["effective_episodes"] - 1, 1))


def _share_error(scores: dict[str, Any], expected: float, error: float) -> float:
    least = math.sqrt(expected * (1 - expected) / scores["effective_episodes"])
    return _sigmas(scores) * max(error, least)


def _direction(scores: dict[str, Any]) -> str:
    return "too pessimistic" if scores["bias"] > 0 else "too optimistic"


def _off(scores: dict[str, Any]) -> str:
    return f"{abs(scores['bias']):.2g}"


def _percent(share: float) -> str:
    """Format a share; nearly none and nearly all are not rounded away."""
    digits = 1 if 0 < share < 0.01 or 0.99 < share < 1 else 0
    return f"{share:.{digits}%}"
