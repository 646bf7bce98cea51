"""Probability metrics: how far a predicted law is from its Bellman target."""

from umdqn.parts.table import Table

METRICS = Table(
    "metric",
    "umdqn.metrics.metric:Metric",
    {
        "kl": "umdqn.metrics.kl:KL",
        "cramer": "umdqn.metrics.cramer:Cramer",
        "wasserstein": "umdqn.metrics.wasserstein:Wasserstein",
        "mmd": "umdqn.metrics.mmd:Mmd",
        "mean": "umdqn.metrics.mean:Mean",
    },
)
"""Metrics by name."""
