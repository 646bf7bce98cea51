"""Probability metrics: how far a predicted law is from its target."""

from umdqn.metrics.cramer import Cramer
from umdqn.metrics.kl import KL
from umdqn.metrics.mean import Mean
from umdqn.metrics.metric import Metric
from umdqn.metrics.mmd import Mmd
from umdqn.metrics.wasserstein import Wasserstein, paired_quantile_huber, quantile_huber

METRICS: dict[str, type[Metric]] = {
    "kl": KL,
    "cramer": Cramer,
    "wasserstein": Wasserstein,
    "mmd": Mmd,
    "mean": Mean,
}
"""Every metric by the name that users type."""

__all__ = [
    "KL",
    "METRICS",
    "Cramer",
    "Mean",
    "Metric",
    "Mmd",
    "Wasserstein",
    "paired_quantile_huber",
    "quantile_huber",
]
