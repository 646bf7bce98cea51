"""The format of manifests, as data: what every reader checks first. Imports no JAX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from umdqn import __version__
from umdqn.errors import UmdqnError
from umdqn.runs.files import read_json, unsealed

FORMAT = "umdqn-run"
FORMAT_VERSION = 3
_OLD_FORMATS = (1, 2)


def manifest_data(path: Path) -> dict[str, Any]:
    """Return the manifest of a run directory as it was written: known format, right checksum."""
    return unsealed(path / "manifest.json", check_format(path))


def check_format(path: Path) -> dict[str, Any]:
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


def check_manifest(manifest: dict[str, Any]) -> None:
    """Raise if a manifest lacks a field that others rely on."""
    needed: dict[str, type | tuple[type, ...]] = {
        "status": str,
        "step": int,
        "seconds": (int, float),
        "versions": dict,
        "config": dict,
        "environment": dict,
    }
    for name, kind in needed.items():
        if not isinstance(manifest.get(name), kind):
            raise UmdqnError(f"{name} is {manifest.get(name)!r}")
    mark = manifest.get("metrics")
    if mark is not None and list(map(type, mark)) != [int, str]:
        raise UmdqnError(f"metrics is {mark!r}")
