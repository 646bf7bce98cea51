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
