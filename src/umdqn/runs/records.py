"""The metrics of a run: one line of JSON per evaluation and seed, and the same as CSV."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from umdqn.errors import UmdqnError
from umdqn.runs.files import append_text, read_bytes, write_bytes, write_csv
from umdqn.text import is_plain

Record = dict[str, Any]
_NEEDED = {"step": int, "seed": int, "return_mean": float}
"""Fields that every line must have."""
_VALUES = (int, float, type(None))
"""What a line holds."""


class Mark(NamedTuple):
    """How much had been written at some moment."""

    size: int
    sha256: str | None
    """Its checksum; None if unknown."""


class Records:
    """`metrics.jsonl` and `metrics.csv` of a run."""

    def __init__(self, run: Path):
        self.path = run / "metrics.jsonl"
        self._table = run / "metrics.csv"

    def make(self) -> None:
        """Make an empty file if there is none."""
        append_text(self.path, "")

    def append(self, record: Record) -> None:
        """Append one line."""
        append_text(self.path, json.dumps(record) + "\n")

    def mark(self) -> Mark:
        """Return the mark of the current content."""
        data = read_bytes(self.path)
        return Mark(len(data), hashlib.sha256(data).hexdigest())

    def check(self, mark: Mark) -> bytes:
        """Return the content; raises unless it begins with what was there at a mark."""
        data = read_bytes(self.path)
        if len(data) < mark.size:
            raise UmdqnError(f"{self.path} is corrupt: lines are missing")
        known = hashlib.sha256(data[: mark.size]).hexdigest()
        if mark.sha256 is not None and mark.sha256 != known:
            raise UmdqnError(f"{self.path} is corrupt: its checksum is wrong")
        return data

    def cut(self, mark: Mark) -> None:
        """Remove what was written after a mark.

        The rest becomes a new file: the old one may have other names, such as in a backup.
        """
        write_bytes(self.path, self.check(mark)[: mark.size])

    def read(self, mark: Mark | None = None, ended: bool = False) -> list[Record]:
        """Return all lines, verified up to a mark; an unfinished last line is left out.

        Raises if a run that `ended` has more than the mark covers, or if a line comes twice.
        """
        data = self.check(mark or Mark(0, None))
        if ended and mark is not None and len(data) > mark.size:
            raise UmdqnError(f"{self.path} is corrupt: it has lines after the end of the run")
        # Text after the last line break is a line that a crash cut short.
        lines = enumerate(data.split(b"\n")[:-1], start=1)
        records: dict[tuple[int, int], Record] = {}
        for number, line in lines:
            record = self._line(number, line)
            key = (record["step"], record["seed"])
            if key in records:
                raise UmdqnError(f"{self.path} is corrupt: line {number} comes twice")
            records[key] = record
        return list(records.values())

    def _line(self, number: int, line: bytes) -> Record:
        try:
            record = json.loads(line)
            numbers = all(type(value) in _VALUES for value in record.values())
            if numbers and all(type(record[name]) is kind for name, kind in _NEEDED.items()):
                self._check_sizes(record)
                return record
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            pass
        raise UmdqnError(f"{self.path} is corrupt: line {number}")

    def _check_sizes(self, record: Record) -> None:
        """Raise `ValueError` for steps and seeds that cannot be, and names that do not show."""
        counts = all(0 <= record[name] < 2**63 for name in ("step", "seed"))
        if not (counts and math.isfinite(record["return_mean"]) and all(map(is_plain, record))):
            raise ValueError

    def write_table(self) -> None:
        """Write all metrics as CSV."""
        write_csv(self._table, self.read(), ("step", "seed"))
