"""Which metrics can train which representations."""

from __future__ import annotations

from umdqn.errors import UmdqnError
from umdqn.metrics import METRICS
from umdqn.metrics.metric import Metric
from umdqn.representations import REPRESENTATIONS
from umdqn.representations.representation import Representation


def check_pair(representation: Representation, metric: Metric) -> None:
    """Raise an error that lists what goes together if a metric cannot train a representation."""
    kind = type(representation)
    if metric.comparison(kind) is not None:
        return
    name, metric_name = REPRESENTATIONS.name_of(representation), METRICS.name_of(metric)
    served = [n for n, other in REPRESENTATIONS.items() if metric.comparison(other) is not None]  # type: ignore[arg-type]
    serving = [n for n, other in METRICS.items() if other().comparison(kind) is not None]  # type: ignore[attr-defined]
    raise UmdqnError(
        f"metric {metric_name!r} cannot train representation {name!r}: {name} goes with "
        f"{', '.join(serving)}; this {metric_name} goes with {', '.join(served)}"
    )
