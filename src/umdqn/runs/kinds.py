"""Kinds of parts: the configuration fields that hold a part chosen by name. Imports no JAX."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from umdqn import (
    decisions,
    exploration,
    metrics,
    networks,
    optimisers,
    replay,
    representations,
    supports,
    targets,
)
from umdqn.errors import unknown
from umdqn.parts.table import Table

KINDS: dict[str, Table] = {
    "representation": representations.REPRESENTATIONS,
    "metric": metrics.METRICS,
    "decision": decisions.DECISIONS,
    "torso": networks.TORSOS,
    "optimiser": optimisers.OPTIMISERS,
    "replay": replay.REPLAYS,
    "exploration": exploration.EXPLORATIONS,
    "target": targets.TARGETS,
    "support": supports.SUPPORTS,
}
"""Fields that hold a part chosen by name, and the table to choose from."""

PACKAGES: dict[str, ModuleType] = {
    "representation": representations,
    "metric": metrics,
    "decision": decisions,
    "torso": networks,
    "optimiser": optimisers,
    "replay": replay,
    "exploration": exploration,
    "target": targets,
    "support": supports,
}
"""The package of each kind of part; the first line of its docstring says what the kind is for."""

DEFAULTS = {
    "decision": "mean",
    "torso": "auto",
    "optimiser": "adam",
    "replay": "uniform",
    "exploration": "epsilon-greedy",
    "target": "periodic",
    "support": "learned",
}
"""Names of default parts; representation and metric come from the algorithm."""


def purpose(kind: str) -> str:
    """Return one line on what a kind of part is for."""
    return (PACKAGES[kind].__doc__ or "").split("\n")[0]


def register(kind: str, name: str, part: Any) -> None:
    """Add a part of your own under a name: `umdqn.register("metric", "energy", Energy)`.

    The name then works wherever the names of built-in parts do.
    """
    if kind not in KINDS:
        raise unknown("kind of part", str(kind), KINDS)
    KINDS[kind].register(name, part)
