"""The evaluations of one run: as a data frame, and as a learning curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from umdqn.errors import unknown
from umdqn.extras import missing
from umdqn.laws.showing import axes_for
from umdqn.runs.records import Record
from umdqn.text import drawn

_LABELS = {
    "return_mean": "return of an episode",
    "discounted_mean": "discounted return of an episode",
    "train_return_mean": "return of an episode of training",
    "loss_mean": "loss",
}


def as_frame(records: Sequence[Record]) -> Any:
    """Return records as a pandas data frame, one row per evaluation and seed."""
    try:
        import pandas
    except ImportError:
        what = "run.records is a pandas data frame (run.evaluations has it as dictionaries), and"
        raise missing(what, "pandas") from None
    return pandas.DataFrame(list(records))


def plot_curve(records: Sequence[Record], value: str, label: str, axes: Any = None) -> Any:
    """Draw a number of the records by step: the mean over seeds, and the range of seeds."""
    known = [name for name in (records[0] if records else _LABELS) if name not in ("step", "seed")]
    if value not in known:
        raise unknown("number of the records", value, known)
    title = _LABELS.get(value, drawn(value))
    axes = axes_for("steps", title) if axes is None else axes
    by_seed: dict[int, dict[int, float]] = {}
    for record in records:
        number = record.get(value)
        found = by_seed.setdefault(record["seed"], {})
        found[record["step"]] = np.nan if number is None else number
    steps = sorted({step for found in by_seed.values() for step in found})
    curves = np.array([[found.get(step, np.nan) for step in steps] for found in by_seed.values()])
    several = len(curves) > 1
    if several:
        low, high = curves.min(axis=0), curves.max(axis=0)
        axes.fill_between(steps, low, high, alpha=0.25, linewidth=0, label="range of seeds")
    name = drawn(label) + (f", mean of {len(curves)} seeds" if several else "")
    axes.plot(steps, curves.mean(axis=0) if len(curves) else [], label=name, marker=".")
    axes.set_xlabel("steps")
    axes.set_ylabel(title)
    axes.legend()
    return axes
