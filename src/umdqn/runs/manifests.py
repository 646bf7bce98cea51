"""Manifests: what a run directory says of its run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from umdqn import __version__
from umdqn.errors import UmdqnError, one_line
from umdqn.parts.imports import remember_places
from umdqn.runs.config import Config
from umdqn.runs.fields import MissingPart, from_dict
from umdqn.runs.formats import manifest_data
from umdqn.runs.trust import Untrusted, check_trust
from umdqn.specs import EnvSpec

# What reading a configuration raises if its data is nonsense.
_NO_CONFIG = (KeyError, TypeError, AttributeError, ValueError, OverflowError, UmdqnError)


def read_manifest(path: Path) -> tuple[Config, EnvSpec, dict[str, Any]]:
    """Return the configuration, the environment's specification, and the whole manifest.

    Raises `Untrusted` if the run comes from elsewhere and names code that would be imported.
    """
    manifest = manifest_data(path)
    try:
        check_trust(path, [manifest["config"]], manifest)
        remember_places(manifest.get("imports"))
    except Untrusted:
        raise
    except _NO_CONFIG as error:
        raise _unreadable(path, manifest, error) from error
    return *parse_manifest(path, manifest), manifest


def parse_manifest(path: Path, manifest: dict[str, Any]) -> tuple[Config, EnvSpec]:
    """Return the configuration and the environment's specification of a manifest's data.

    Imports the parts that the configuration names, which the caller has made sure of.
    """
    try:
        return from_dict(Config, manifest["config"]), from_dict(EnvSpec, manifest["environment"])
    except MissingPart as error:
        raise UmdqnError(
            f"{path} has a part that is not here: {error}; register it first, or run "
            "where its module can be imported"
        ) from error
    except _NO_CONFIG as error:
        raise _unreadable(path, manifest, error) from error


def _unreadable(path: Path, manifest: dict[str, Any], error: Exception) -> UmdqnError:
    known = manifest["versions"].get("umdqn", __version__)
    if known != __version__:
        written = f"{path} was written by umdqn {known}, not {__version__}"
        return UmdqnError(f"{written}: {_why(error)}")
    return UmdqnError(f"{path / 'manifest.json'} is corrupt: {_why(error)}")


def config_of(data: dict[str, Any], path: Path) -> Config:
    """Return the configuration that a file other than a manifest holds."""
    try:
        return from_dict(Config, data)
    except _NO_CONFIG as error:
        raise UmdqnError(f"{path} is corrupt: {_why(error)}") from error


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, UmdqnError) else one_line(error)
