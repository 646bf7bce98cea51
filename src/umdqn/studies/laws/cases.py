"""The trainings of the study of laws, by section."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from umdqn.agents.algorithms import ALGORITHMS

KAPPAS = (1.0, 0.1, 0.02, 0.0)
UMDQN = ("umdqn-kl", "umdqn-c", "umdqn-w")
REPRESENTATIONS = {"umnn-pdf": "umdqn-kl", "umnn-cdf": "umdqn-c", "umnn-qf": "umdqn-w"}
METRICS: dict[str, dict[str, Any]] = {
    "kl": {},
    "cramer": {"metric.root": False},
    "wasserstein": {"metric.kappa": 0.02},
}
REGRESSED = ("umdqn-w", "qr-dqn", "iqn", "fqf")
LATE = ("umdqn-w", "dqn", "qr-dqn", "nc-qr-dqn")
DOMAINS = {"narrow": (-0.75, 0.75), "right": (-2.0, 2.0), "wide": (-20.0, 20.0)}


class Case(NamedTuple):
    """One training of the study."""

    agent: str
    preset: str
    steps: int
    fields: Mapping[str, Any]


# The longest trainings show how accurate laws can get; comparisons need far fewer steps.
_LONG_STEPS = 300_000
_PAPER_STEPS = 60_000
_COMPARED_STEPS = 20_000
# Agents whose choices still change after that are trained longer, with frequent checkpoints: with a
# constant learning rate, choices between nearly equal actions fluctuate.
_LATE_STEPS = 100_000
_LATE_FIELDS = {"checkpoint_every": 10_000}


def _compared(agent: str, **fields: Any) -> Case:
    # In one domain for all: what is compared is not where laws are resolved.
    return Case(agent, "tuned", _COMPARED_STEPS, {"support": "fixed", **fields})


def _cases() -> dict[str, dict[str, Case]]:
    algorithms = {name: Case(name, "paper", _PAPER_STEPS, {}) for name in ALGORITHMS}
    kappa = {
        f"{agent}-kappa-{value:g}": _compared(agent, **{"metric.kappa": value})
        for agent in REGRESSED
        for value in KAPPAS
    }
    matrix = {
        f"{representation}-{metric}": _compared(
            agent,
            representation=representation,
            metric=metric,
            **fields,
            **{"representation.point_scale": 60.0},
        )
        for representation, agent in REPRESENTATIONS.items()
        for metric, fields in METRICS.items()
    }
    direction = {
        f"umdqn-kl-{name}": _compared("umdqn-kl", **{"metric.direction": name})
        for name in ("forward", "reverse", "reverse-raw")
    }
    domain = {
        f"{agent}-{name}": _compared(agent, domain=bounds)
        for agent in ("umdqn-kl", "umdqn-c")
        for name, bounds in DOMAINS.items()
    }
    return {
        "tuned": {agent: Case(agent, "tuned", _LONG_STEPS, {}) for agent in UMDQN},
        "algorithms": algorithms,
        "longer": {name: Case(name, "paper", _LATE_STEPS, _LATE_FIELDS) for name in LATE},
        "matrix": matrix,
        "direction": direction,
        "domain": domain,
        "kappa": kappa,
    }


SECTIONS: dict[str, dict[str, Case]] = _cases()
"""Cases by section; what two sections share is trained once."""
