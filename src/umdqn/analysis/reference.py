"""Known scales of returns: what a random policy earns, and what counts as 1."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import NamedTuple


class Reference(NamedTuple):
    """Returns that normalised scores count as 0 and 1 on an environment."""

    low: float
    """The mean return of a uniformly random policy (`benchmarks/reference_scores.py`)."""
    high: float
    high_source: str
    """Where the upper one comes from."""


@cache
def reference_scores() -> dict[str, Reference]:
    """Return the known scales by environment."""
    text = files("umdqn.analysis").joinpath("reference_scores.json").read_text()
    return {
        name: Reference(float(found["low"]), float(found["high"]), found["high_source"])
        for name, found in json.loads(text).items()
    }
