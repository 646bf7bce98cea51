"""Manifests: what a run directory says of its run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from umdqn import __version__
from umdqn.errors import UmdqnError
from umdqn.runs.config import Config
from umdqn.runs.fields import MissingPart, from_dict
from umdqn.runs.formats import check_manifest, manifest_data
from umdqn.specs import EnvSpec


def read_manifest(path: Path) -> tuple[Config, EnvSpec, dict[str, Any]]:
    """Return the configuration, the environment's specification, and the whole manifest."""
    manifest = manifest_data(path)
    config, spec = parse_manifest(path, manifest)
    return config, spec, manifest


def parse_manifest(path: Path, manifest: dict[str, Any]) -> tuple[Config, EnvSpec]:
    """Return the configuration and the environment's specification of a manifest's data."""
    try:
        check_manifest(manifest)
        return from_dict(Config, manifest["config"]), from_dict(EnvSpec, manifest["environment"])
    except MissingPart as error:
        raise UmdqnError(
            f"{path} has a part that is not here: {error}; register it first, or run "
            "where its module can be imported"
        ) from error
    except (KeyError, TypeError, AttributeError, ValueError, UmdqnError) as error:
        writer = manifest.get("versions")
        known = writer.get("umdqn") if isinstance(writer, dict) else None
        if isinstance(known, str) and known != __version__:
            raise UmdqnError(
                f"{path} was written by umdqn {known}, not {__version__}: {error}"
            ) from error
        raise UmdqnError(f"{path / 'manifest.json'} is corrupt: {error}") from error
