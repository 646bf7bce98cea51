"""What a sweep has found: the metrics of all its finished runs as one table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from umdqn.runs import RunDirectory
from umdqn.runs.files import write_bytes, write_csv
from umdqn.sweeps.driver import read_plan
from umdqn.sweeps.work import Place
from umdqn.types import UmdqnError

Record = dict[str, Any]


def collect(root: Path) -> list[Record]:
    """One record for each evaluation of each seed, with its place on the axes.

    Of the jobs that are finished, in the order of the plan; the same whatever happened on the way.
    """
    place = Place(root)
    records = []
    for job in read_plan(root):
        if place.finished(job):
            lines = RunDirectory(place.run(job.name)).read_metrics()
            records += [{**job.point, **line} for line in lines]
    return records


def collect_all(paths: Sequence[Path]) -> list[Record]:
    """The records of several sweeps and runs, each seed of a point once."""
    found: dict[str, Path] = {}
    records = []
    for path in paths:
        of_path = _of_run(path) if (path / "manifest.json").is_file() else collect(path)
        for record in final(of_path):
            point = {axis: record[axis] for axis in axes_of([record])} | {"seed": record["seed"]}
            name = ", ".join(f"{axis} {value}" for axis, value in point.items())
            if name in found:
                raise UmdqnError(f"{found[name]} and {path} both hold {name}")
            found[name] = path
        records += of_path
    return records


def _of_run(path: Path) -> list[Record]:
    """The records of a run that stands alone, finished or not."""
    directory = RunDirectory(path)
    config, *_ = directory.read_manifest()
    point = {"env": config.env, "agent": config.label, "preset": config.preset}
    return [{**point, **line} for line in directory.read_metrics()]


def write_results(root: Path) -> list[Path]:
    """Write the table as CSV and JSON lines; the files written."""
    records = collect(root)
    lines = "".join(json.dumps(record) + "\n" for record in records)
    written = [root / "results.csv", root / "results.jsonl"]
    write_csv(written[0], records)
    write_bytes(written[1], lines.encode())
    return written


def final(records: Sequence[Record]) -> list[Record]:
    """The last record of every seed of every point."""
    last: dict[str, Record] = {}
    axes = axes_of(records)
    for record in records:
        seed = {name: value for name, value in record.items() if name in axes}
        key = json.dumps(seed | {"seed": record["seed"]}, sort_keys=True)
        if key not in last or record["step"] >= last[key]["step"]:
            last[key] = record
    return list(last.values())


def axes_of(records: Sequence[Record]) -> list[str]:
    """Names of the axes: what stands before the step and the seed."""
    every = (name for record in records for name in list(record)[: list(record).index("step")])
    return list(dict.fromkeys(every))
