"""The format of manifests, and the check of JSON data against a schema. Imports no JAX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict, TypeVar, cast

import msgspec
from msgspec import Meta

from umdqn import __version__
from umdqn.errors import UmdqnError
from umdqn.runs.files import read_json, unsealed
from umdqn.text import is_plain, shortened, visible

FORMAT = "umdqn-run"
FORMAT_VERSION = 3
_OLD_FORMATS = (1, 2)

T = TypeVar("T")

Count = Annotated[int, Meta(ge=0, le=2**62)]
Checksum = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class Manifest(TypedDict):
    """`manifest.json` of a run; configuration and environment are checked field by field."""

    format: str
    format_version: int
    status: Literal["running", "interrupted", "stopped", "finished", "failed"]
    step: Count
    seconds: Annotated[float, Meta(ge=0)]
    versions: dict[str, str]
    config: dict[str, Any]
    environment: dict[str, Any]
    metrics: NotRequired[tuple[Count, Checksum] | None]
    peak_memory: NotRequired[Count | None]
    reason: NotRequired[str]


def manifest_data(path: Path) -> dict[str, Any]:
    """Return the manifest of a run; raise unless format, checksum and schema are as expected."""
    file = path / "manifest.json"
    return cast(dict[str, Any], checked(unsealed(file, _of_known_format(path)), Manifest, file))


def _of_known_format(path: Path) -> dict[str, Any]:
    """Return what the manifest of a run directory holds; raise unless this version can read it."""
    file = path / "manifest.json"
    if not path.is_dir():
        raise UmdqnError(f"{path} is not a run directory: there is no such directory")
    if not file.is_file():
        raise UmdqnError(f"{path} is not a run directory: it has no manifest.json")
    manifest = read_json(file)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise UmdqnError(f"{file} is not the manifest of a umdqn run")
    found = manifest.get("format_version")
    if found in _OLD_FORMATS:
        raise UmdqnError(
            f"{path} was written by umdqn 0.1, whose runs umdqn {__version__} cannot "
            "read: train it again"
        )
    if found != FORMAT_VERSION:
        raise UmdqnError(f"{path} has format version {found!r}; this umdqn reads {FORMAT_VERSION}")
    return manifest


def checked(data: Any, schema: type[T], path: Path) -> T:
    """Return JSON data that follows a schema; raise and name the file and the place if not."""
    try:
        msgspec.convert(data, schema)
    except (msgspec.ValidationError, RecursionError) as error:
        why = str(error).replace(" - at `$.", " at `").replace(" - at `$`", "")
        raise UmdqnError(f"{path} is corrupt: {why[:1].lower()}{why[1:]}") from error
    odd = _odd_text(data)
    if odd is not None:
        where = visible(shortened(repr(odd), 60))
        raise UmdqnError(f"{path} is corrupt: control characters in {where}")
    return cast(T, data)


def _odd_text(data: Any) -> str | None:
    """Return a text in JSON data that does not show as it is; None if there is none."""
    left = [data]
    while left:
        value = left.pop()
        if isinstance(value, str) and not is_plain(value):
            return value
        if isinstance(value, dict):
            left += [*value, *value.values()]
        elif isinstance(value, list):
            left += value
    return None
