"""Results of sweeps: the metrics of all finished runs as one table."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from umdqn.errors import UmdqnError
from umdqn.runs.directory import RunDirectory
from umdqn.runs.files import read_bytes, write_bytes, write_csv
from umdqn.sweeps.driver import read_plan
from umdqn.sweeps.work import Place
from umdqn.text import of_cell, shortened

Record = dict[str, Any]
# Numeric columns that comparisons need.
_KINDS: dict[str, Callable[[str], Any]] = {"step": int, "seed": int, "return_mean": float}


def collect(root: Path) -> list[Record]:
    """Return one record for each evaluation of each seed, with its point on the axes.

    Only finished jobs count, in the order of the plan.
    """
    place = Place(root)
    records = []
    for job in read_plan(root):
        if place.finished(job):
            lines = RunDirectory(place.run(job.name)).read_metrics()
            records += [{**job.point, **line} for line in lines]
    return records


def collect_all(paths: Sequence[Path]) -> list[Record]:
    """Return the records of several sweeps, runs and `results.csv`; each seed of a point once."""
    found: dict[str, Path] = {}
    records = []
    for path in paths:
        of_path = _records_in(path)
        for record in final(of_path):
            point = {axis: record[axis] for axis in axes_of([record])} | {"seed": record["seed"]}
            name = ", ".join(f"{axis} {value}" for axis, value in point.items())
            if name in found:
                raise UmdqnError(f"{found[name]} and {path} both hold {name}")
            found[name] = path
        records += of_path
    return records


def unfinished(path: Path) -> str | None:
    """Return a remark on the unfinished runs of a sweep; None if all are finished, or no sweep."""
    if not Place(path).plan.is_file():
        return None
    jobs = read_plan(path)
    left = sum(not Place(path).finished(job) for job in jobs)
    return f"{path}: {left} of {len(jobs)} runs are not finished and do not count" if left else None


def _records_in(path: Path) -> list[Record]:
    """Return the records of a sweep, of a run, or of a `results.csv`."""
    if not path.exists():
        raise UmdqnError(f"cannot read {path}: there is no such file or directory")
    if path.is_file():
        return _of_table(path)
    return _of_run(path) if (path / "manifest.json").is_file() else collect(path)


def _of_table(path: Path) -> list[Record]:
    """Return the records of a `results.csv`."""
    # The user names it, and may name a link.
    data = read_bytes(path.resolve())
    try:
        rows = list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True))
        head, *lines = rows or [[]]
        names = list(map(of_cell, head))
        records = [
            {name: _read(name, text) for name, text in zip(names, line, strict=True) if text != ""}
            for line in lines
        ]
    except (ValueError, csv.Error) as error:
        why = shortened(str(error), 200)
        raise UmdqnError(f"{path} is not the table of a sweep: {why}") from error
    needed = ("env", "agent", *_KINDS)
    lacking = [name for record in records for name in needed if name not in record]
    if lacking or not records:
        why = f"it has no {lacking[0]}" if lacking else "it is empty"
        raise UmdqnError(f"{path} is not the table of a sweep: {why}")
    return records


def _read(column: str, text: str) -> Any:
    value = _KINDS.get(column, of_cell)(text)
    counted = not isinstance(value, int) or 0 <= value < 2**63
    if not counted or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"{column} is {text[:20]}")
    return value


def _of_run(path: Path) -> list[Record]:
    """Return the records of a single run, finished or not."""
    directory = RunDirectory(path)
    config, *_ = directory.read_manifest()
    point = {"env": config.env, "agent": config.label, "preset": config.preset}
    return [{**point, **line} for line in directory.read_metrics()]


def write_results(root: Path) -> list[Path]:
    """Write the table as CSV and JSON lines; return the files written."""
    records = collect(root)
    lines = "".join(json.dumps(record) + "\n" for record in records)
    written = [root / "results.csv", root / "results.jsonl"]
    write_csv(written[0], records, axes_of(records))
    write_bytes(written[1], lines.encode())
    return written


def final(records: Sequence[Record]) -> list[Record]:
    """Return the last record of every seed of every point."""
    last: dict[str, Record] = {}
    axes = axes_of(records)
    for record in records:
        seed = {name: value for name, value in record.items() if name in axes}
        key = json.dumps(seed | {"seed": record["seed"]}, sort_keys=True)
        if key not in last or record["step"] >= last[key]["step"]:
            last[key] = record
    return list(last.values())


def axes_of(records: Sequence[Record]) -> list[str]:
    """Return the names of the axes: the columns before the step and the seed."""
    every = (name for record in records for name in list(record)[: list(record).index("step")])
    return list(dict.fromkeys(every))
