"""What the page asks about files of runs: the list, settings, curves. Imports no JAX."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from umdqn.errors import InvalidField, UmdqnError
from umdqn.runs.files import read_sealed
from umdqn.runs.formats import manifest_data
from umdqn.viewer.asked import Asked
from umdqn.viewer.curves import Window, curve
from umdqn.viewer.index import Index, checkpoint_steps
from umdqn.viewer.numbers import finite
from umdqn.viewer.records import GrowingRecords
from umdqn.viewer.roots import NotFound, Roots

_MOST_POINTS, _POINTS = 2_000, 500


class Library:
    """Runs below some roots, and what has been read of them."""

    def __init__(self, roots: Roots):
        self._roots, self._index = roots, Index(roots)
        self._records: dict[str, GrowingRecords] = {}

    def runs(self, asked: Asked) -> dict[str, Any]:
        """Return the list of runs."""
        runs = self._index.runs()
        return {
            "roots": [str(path) for path in self._roots.paths],
            "complete": self._roots.complete,
            "runs": runs,
        }

    def run(self, asked: Asked) -> dict[str, Any]:
        """Return one run: summary, settings, checkpoints, and its saved verdict."""
        name = asked.text("run")
        path = self._roots.run(name)
        manifest = manifest_data(path)
        return {
            "run": self._index.run(name),
            "path": str(path),
            "config": manifest["config"],
            "versions": manifest["versions"],
            "checkpoints": checkpoint_steps(self._roots, path),
            "seeds": manifest.get("seeds", []),
            "trust": _saved_trust(self._roots, path),
        }

    def curves(self, asked: Asked) -> dict[str, Any]:
        """Return learning curves: one a run, or one for runs that differ in their seeds only."""
        names, field = asked.runs(), asked.text("field", "return_mean")
        low, high = asked.number("from", -math.inf), asked.number("to", math.inf)
        points = asked.whole("points", _POINTS, _MOST_POINTS)
        window = Window(low, high, max(points, 2))
        runs = {name: self._index.run(name) for name in names}
        grouped = asked.choice("group", ("runs", "settings"), "runs") == "settings"
        records = {name: self._read(name) for name in names}
        fields = dict.fromkeys(f for one in records.values() for f in one.fields)
        if field not in fields and fields:
            raise InvalidField("field", field[:80], f"one of {', '.join(fields)}")
        found = []
        for members in _series(runs, grouped):
            tables = [records[member].table(field) for member in members]
            first = runs[members[0]]
            about = {key: first[key] for key in ("name", "agent", "env")} | {"runs": members}
            found.append(about | curve([one for one in tables if len(one.steps)], window))
        damaged = sum(one.damaged for one in records.values())
        return {"field": field, "fields": list(fields), "series": found, "damaged": damaged}

    def _read(self, name: str) -> GrowingRecords:
        run = self._roots.run(name)
        path = run / "metrics.jsonl"
        known = self._records.setdefault(name, GrowingRecords(path))
        try:
            self._roots.file(run, "metrics.jsonl")
        except NotFound:
            return GrowingRecords(path)
        known.refresh()
        return known


def _series(runs: dict[str, dict[str, Any]], grouped: bool) -> list[list[str]]:
    """Return the runs of each curve: one, or all that differ in their seeds only."""
    series: dict[str, list[str]] = {}
    for name, run in runs.items():
        series.setdefault(run["group"] or name if grouped else name, []).append(name)
    return list(series.values())


def _saved_trust(roots: Roots, run: Path) -> dict[str, Any] | None:
    """Return what `umdqn calibrate --save` has written, with the checkpoints that it is about."""
    try:
        data = read_sealed(roots.file(run, "calibration.json"))
        steps = sorted({int(step) for step in data["steps"].values()})
        return finite({**data["trust"], "verdict": str(data["trust"]["verdict"]), "steps": steps})
    except NotFound:
        return None
    except (UmdqnError, KeyError, TypeError, ValueError, AttributeError) as error:
        return {"error": f"the saved calibration cannot be read: {error}"}
