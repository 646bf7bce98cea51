"""Probability metrics: how far a predicted law is from its target."""

from umdqn.metrics.cramer import Cramer
from umdqn.metrics.kl import KL
from umdqn.metrics.metric import Metric
from umdqn.metrics.wasserstein import Wasserstein, quantile_huber

METRICS: dict[str, type[Metric]] = {"kl": KL, "cramer": Cramer, "wasserstein": Wasserstein}
"""Every metric by the name that users type."""

__all__ = ["KL", "METRICS", "Cramer", "Metric", "Wasserstein", "quantile_huber"]
