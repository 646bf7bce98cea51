"""The table of algorithms: one line each, as in the paper's Table 1."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple


class Algorithm(NamedTuple):
    """What names an algorithm; everything else is shared."""

    representation: str
    metric: str
    summary: str
    fields: Mapping[str, Any] = MappingProxyType({})
    """Fields of these parts that differ from their defaults."""


ALGORITHMS: dict[str, Algorithm] = {
    "umdqn-kl": Algorithm("umnn-pdf", "kl", "continuous PDF, KL divergence"),
    "umdqn-c": Algorithm("umnn-cdf", "cramer", "continuous CDF, Cramer distance"),
    "umdqn-w": Algorithm("umnn-qf", "wasserstein", "continuous QF, Wasserstein distance"),
    "dqn": Algorithm("expectation", "mean", "expectation, Huber loss"),
    "cdqn": Algorithm("categorical", "kl", "masses at fixed atoms, KL divergence (C51)"),
    "qr-dqn": Algorithm("quantiles", "wasserstein", "quantiles at fixed fractions"),
    "nc-qr-dqn": Algorithm("non-crossing-quantiles", "wasserstein", "quantiles that cannot cross"),
    "iqn": Algorithm(
        "implicit-quantiles",
        "wasserstein",
        "quantiles at drawn fractions",
        {"metric.points": 32, "metric.per_transition": True},
    ),
    "fqf": Algorithm("proposed-quantiles", "wasserstein", "quantiles at proposed fractions"),
    "mmdqn": Algorithm("quantiles", "mmd", "particles, maximum mean discrepancy"),
}
"""Algorithms by name."""
