"""The records of a run as they grow: read once, then only what was added."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from umdqn.errors import UmdqnError

# Bytes before the end of what was read that must be the same at the next reading.
_OVERLAP = 256
# Bytes that one reading takes at most: a file that is larger is read in several.
_PIECE = 32_000_000
# Larger whole numbers are no counts, and no number of the browser.
_LARGEST = 2**53
_NEEDED = {"step": int, "seed": int, "return_mean": float}


class Table(NamedTuple):
    """One field of all records, by step and seed."""

    steps: np.ndarray
    """Distinct steps in ascending order [S]."""
    seeds: tuple[int, ...]
    values: np.ndarray
    """[S, seeds]; NaN where there is no number."""


class GrowingRecords:
    """The lines of a `metrics.jsonl` that another process may be writing.

    Only lines that end are read. If the file was cut, as it is when a run is resumed, it is read
    anew. Damaged lines are left out and counted.
    """

    def __init__(self, path: Path):
        self._path = path
        self._forget()

    def _forget(self) -> None:
        self._offset, self._before = 0, b""
        self.damaged = 0
        self.version = getattr(self, "version", 0) + 1
        """Changes whenever the records do."""
        self._steps: list[int] = []
        self._seeds: list[int] = []
        self._columns: dict[str, list[float]] = {}
        self._tables: dict[str, Table] = {}

    @property
    def fields(self) -> list[str]:
        """The numbers that records hold, in the order of their first appearance."""
        return list(self._columns)

    def refresh(self) -> None:
        """Read what was added since the last time."""
        try:
            with self._path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(self._offset - len(self._before))
                if size < self._offset or file.read(len(self._before)) != self._before:
                    self._forget()
                    file.seek(0)
                while piece := self._whole_lines(file.read(_PIECE)):
                    self._take(piece)
                    file.seek(self._offset)
        except OSError as error:
            raise UmdqnError(f"cannot read {self._path}: {error.strerror}") from None

    def _whole_lines(self, data: bytes) -> bytes:
        return data[: data.rfind(b"\n") + 1]

    def _take(self, data: bytes) -> None:
        for line in data.splitlines():
            self._line(line)
        self._offset += len(data)
        self._before = (self._before + data)[-_OVERLAP:]
        self._tables = {}
        self.version += 1

    def _line(self, line: bytes) -> None:
        record = _parsed(line)
        if record is None:
            self.damaged += 1
            return
        row = len(self._steps)
        self._steps.append(record.pop("step"))
        self._seeds.append(record.pop("seed"))
        for name, value in record.items():
            column = self._columns.setdefault(name, [])
            column += [np.nan] * (row - len(column))
            column.append(float(value) if isinstance(value, int | float) else np.nan)

    def table(self, field: str) -> Table:
        """Return one field by step and seed."""
        if field not in self._tables:
            self._tables[field] = self._pivot(self._columns.get(field, []))
        return self._tables[field]

    def _pivot(self, column: list[float]) -> Table:
        known = np.full(len(self._steps), np.nan)
        known[: len(column)] = column
        steps, rows = np.unique(np.array(self._steps, np.int64), return_inverse=True)
        seeds, columns = np.unique(np.array(self._seeds, np.int64), return_inverse=True)
        values = np.full((len(steps), len(seeds)), np.nan)
        values[rows, columns] = known
        return Table(steps, tuple(seeds.tolist()), values)


def last_score(path: Path, most: int = 262_144) -> tuple[int, float] | None:
    """Return the newest step in a file of records and its mean return over seeds.

    Only the end of the file is read. None if there is no record.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(size - most, 0))
        lines = file.read(most).split(b"\n")[:-1]
    found: dict[int, dict[int, float]] = {}
    for line in reversed(lines[1:] if size > most else lines):
        record = _parsed(line)
        if record is None:
            continue
        if found and record["step"] not in found:
            break
        found.setdefault(record["step"], {}).setdefault(record["seed"], record["return_mean"])
    if not found:
        return None
    ((step, scores),) = found.items()
    return step, float(np.mean(list(scores.values())))


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
        good = all(type(record[name]) is kind for name, kind in _NEEDED.items())
        counted = good and all(0 <= record[name] < _LARGEST for name in ("step", "seed"))
        return record if counted else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
