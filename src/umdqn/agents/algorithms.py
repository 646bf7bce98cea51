"""The table of algorithms: one line each, as in the paper's Table 1."""

from __future__ import annotations

from typing import NamedTuple

from umdqn.laws import (
    CategoricalPdf,
    Expectation,
    ImplicitQuantiles,
    NonCrossingQuantiles,
    ProposedQuantiles,
    Quantiles,
    Representation,
    UmnnCdf,
    UmnnPdf,
    UmnnQf,
)
from umdqn.metrics import KL, Cramer, Mean, Metric, Mmd, Wasserstein


class Algorithm(NamedTuple):
    """What names an algorithm; everything else is shared."""

    representation: Representation
    metric: Metric
    summary: str


ALGORITHMS: dict[str, Algorithm] = {
    "umdqn-kl": Algorithm(UmnnPdf(), KL(), "continuous PDF, KL divergence"),
    "umdqn-c": Algorithm(UmnnCdf(), Cramer(), "continuous CDF, Cramer distance"),
    "umdqn-w": Algorithm(UmnnQf(), Wasserstein(), "continuous QF, Wasserstein distance"),
    "dqn": Algorithm(Expectation(), Mean(), "expectation, Huber loss"),
    "cdqn": Algorithm(CategoricalPdf(), KL(), "masses on a fixed support, KL divergence (C51)"),
    "qr-dqn": Algorithm(Quantiles(), Wasserstein(), "quantiles at fixed fractions"),
    "nc-qr-dqn": Algorithm(NonCrossingQuantiles(), Wasserstein(), "quantiles that cannot cross"),
    "iqn": Algorithm(
        ImplicitQuantiles(),
        Wasserstein(points=32, per_transition=True),
        "quantiles at drawn fractions",
    ),
    "fqf": Algorithm(ProposedQuantiles(), Wasserstein(), "quantiles at proposed fractions"),
    "mmdqn": Algorithm(Quantiles(), Mmd(), "particles, maximum mean discrepancy"),
}
"""Every algorithm by the name that users type."""
