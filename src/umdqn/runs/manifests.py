"""Manifests: what a run directory says of its run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from umdqn import __version__
from umdqn.errors import UmdqnError, one_line
from umdqn.parts.imports import remember_places
from umdqn.runs.config import Config
from umdqn.runs.fields import MissingPart, from_dict
from umdqn.runs.files import read_json
from umdqn.runs.schemas import Manifest, read_checked
from umdqn.runs.trust import Untrusted, check_trust
from umdqn.specs import EnvSpec

FORMAT = "umdqn-run"
FORMAT_VERSION = 3
_OLD_FORMATS = (1, 2)
# What reading a configuration raises if its data is nonsense.
_NO_CONFIG = (KeyError, TypeError, AttributeError, ValueError, OverflowError, UmdqnError)


def read_manifest(path: Path) -> tuple[Config, EnvSpec, dict[str, Any]]:
    """Return the configuration, the environment's specification, and the whole manifest.

    Raises `Untrusted` if the run comes from elsewhere and names code that would be imported.
    """
    file, manifest = path / "manifest.json", _sealed(path)
    try:
        check_trust(path, [manifest["config"]], manifest)
        remember_places(manifest.get("imports"))
        config = from_dict(Config, manifest["config"])
        return config, from_dict(EnvSpec, manifest["environment"]), manifest
    except Untrusted:
        raise
    except MissingPart as error:
        raise UmdqnError(
            f"{path} has a part that is not here: {error}; register it first, or run "
            "where its module can be imported"
        ) from error
    except _NO_CONFIG as error:
        why = _why(error)
        known = manifest["versions"].get("umdqn", __version__)
        if known != __version__:
            raise UmdqnError(
                f"{path} was written by umdqn {known}, not {__version__}: {why}"
            ) from error
        raise UmdqnError(f"{file} is corrupt: {why}") from error


def _sealed(path: Path) -> dict[str, Any]:
    """Return the manifest of a run of this version, as JSON data."""
    file = path / "manifest.json"
    if not path.is_dir():
        raise UmdqnError(f"{path} is not a run directory: there is no such directory")
    if not file.is_file():
        raise UmdqnError(f"{path} is not a run directory: it has no manifest.json")
    manifest: Any = read_json(file)
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
    return cast(dict[str, Any], read_checked(file, Manifest))


def config_of(data: dict[str, Any], path: Path) -> Config:
    """Return the configuration that a file other than a manifest holds."""
    try:
        return from_dict(Config, data)
    except _NO_CONFIG as error:
        raise UmdqnError(f"{path} is corrupt: {_why(error)}") from error


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, UmdqnError) else one_line(error)
