"""The table of algorithms: one line each, as in the paper's Table 1."""

from __future__ import annotations

from typing import NamedTuple

from umdqn.laws import Representation, UmnnCdf, UmnnPdf, UmnnQf
from umdqn.metrics import KL, Cramer, Metric, Wasserstein


class Algorithm(NamedTuple):
    """What names an algorithm; everything else is shared."""

    representation: Representation
    metric: Metric
    summary: str


ALGORITHMS: dict[str, Algorithm] = {
    "umdqn-kl": Algorithm(UmnnPdf(), KL(), "continuous PDF, KL divergence"),
    "umdqn-c": Algorithm(UmnnCdf(), Cramer(), "continuous CDF, Cramer distance"),
    "umdqn-w": Algorithm(UmnnQf(), Wasserstein(), "continuous QF, Wasserstein distance"),
}
"""Every algorithm by the name that users type."""
