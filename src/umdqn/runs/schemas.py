"""Schemas of the JSON files that runs, sweeps and reports are made of.

A file with a valid checksum can still hold nonsense: another program wrote it, or it was changed on
purpose. Every file is compared with its schema when it is read, so that later code meets no missing
key, no other type, and no path that leads out of the run. Keys that a schema does not know are
kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec
from msgspec import Meta

from umdqn.calibration.summary import Summary
from umdqn.errors import UmdqnError
from umdqn.loops.progress import Progress
from umdqn.runs.files import read_json, read_sealed
from umdqn.runs.formats import Checksum, Count, T, checked

Seed = Annotated[str, Meta(pattern="^(0|[1-9][0-9]{0,9})$")]
"""A seed as a key."""
_DATA = Annotated[str, Meta(pattern=r"^(checkpoints|replay)/[0-9][0-9a-z.-]*\.safetensors$")]
_PIECE = Annotated[str, Meta(pattern=r"^replay/[0-9]+-[0-9]{10}-[0-9]+\.safetensors$")]
_Type = Literal["bool", "int32", "int64", "uint32", "float32", "float64"]
_Average = Annotated[
    list[tuple[int | float, _Type]],
    Meta(min_length=len(Progress._fields), max_length=len(Progress._fields)),
]
_Plain = str | int | float | bool | None


class Sum(TypedDict):
    """Size and checksum of a file."""

    bytes: Count
    sha256: Checksum


class Piece(TypedDict):
    """Rows of a replay memory."""

    file: _PIECE
    until: list[Count]
    sum: Sum


class Trainer(TypedDict):
    """What the training loop of a run needs to continue."""

    score: float | None
    losses: dict[Seed, _Average]
    metrics_bytes: Count
    metrics_sha256: NotRequired[Checksum | None]


class Index(TypedDict):
    """`checkpoints/STEP.json`; without `trainer` it lists the agents only."""

    step: Count
    files: dict[_DATA, Sum]
    replay: dict[Seed, list[Piece]]
    entered: NotRequired[dict[Seed, list[Count]]]
    trainer: NotRequired[Trainer]


class Calibration(TypedDict):
    """`calibration.json` of a run."""

    steps: dict[Seed, Count]
    trust: Summary


class JobData(TypedDict):
    """A job of a sweep, in the plan and in a file of its own."""

    # The name becomes that of a directory.
    name: Annotated[str, Meta(pattern=r"^[\w.-]*\w$", max_length=200)]
    point: dict[str, _Plain]
    config: dict[str, Any]


class Plan(TypedDict):
    """`sweep.json`."""

    format: str
    format_version: int
    jobs: list[JobData]


class JobNote(TypedDict):
    """Progress of a job, for display."""

    step: Count
    score: float | None


class Mark(TypedDict):
    """`report.json`: what a directory holds."""

    kind: str


class Measured(TypedDict):
    """What a study measured of a run."""

    step: Count
    seconds: float | None
    config: dict[str, Any]
    seeds: dict[Seed, dict[str, _Plain]]
    optimal_by_step: NotRequired[dict[Seed, list[int]]]


class WandbId(TypedDict):
    """`wandb.json`: the run's id at Weights & Biases."""

    id: Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]


def read_checked(path: Path, schema: type[T]) -> T:
    """Read sealed JSON that must follow a schema."""
    return checked(read_sealed(path), schema, path)


def read_unsealed(path: Path, schema: type[T]) -> T:
    """Read JSON without a checksum that must follow a schema."""
    return checked(read_json(path), schema, path)


def read_calibration(path: Path) -> tuple[dict[str, int], Summary]:
    """Read a saved calibration: the steps of its checkpoint by seed, and what it found."""
    found: Any = read_checked(path, Calibration)
    return found["steps"], msgspec.convert(found["trust"], Summary)


def check_resumable(index: Any, seeds: list[int], path: Path) -> dict[str, Any]:
    """Return what the trainer saved with a checkpoint; raise if it cannot be resumed from."""
    trainer: dict[str, Any] | None = index.get("trainer")
    if trainer is None:
        raise UmdqnError(f"{path} lists the agents only and cannot be resumed")
    names = {str(seed) for seed in seeds}
    for key, found in (("replay", index["replay"]), ("entered", index.get("entered", {}))):
        if not names <= set(found):
            raise UmdqnError(f"{path} is corrupt: {key} lacks seeds of the run")
    for seed in names:
        rings = len(index["entered"][seed])
        if any(len(piece["until"]) != rings for piece in index["replay"][seed]):
            raise UmdqnError(f"{path} is corrupt: pieces of seed {seed} have other rings")
        unknown = [p["file"] for p in index["replay"][seed] if p["file"] not in index["files"]]
        if unknown:
            raise UmdqnError(f"{path} is corrupt: {unknown[0]} is not among its files")
    return trainer
