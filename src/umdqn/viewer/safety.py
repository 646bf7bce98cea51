"""What a run names that is a user's code: the page imports none of it, and says so.

Laws need representation, decision, torso and support. Other parts of users are replaced by
built-in ones, which changes no law: they matter in training only.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from umdqn.errors import UmdqnError
from umdqn.runs.config import Config
from umdqn.runs.kinds import DEFAULTS, KINDS
from umdqn.runs.manifests import parse_manifest
from umdqn.runs.trust import imports_of, objects_of
from umdqn.specs import EnvSpec

_ENVIRONMENT = {"env": "environment", "wrappers": "wrapper"}
_LAWS_NEED = ("representation", "decision", "torso", "support")
_LAWS_DO_NOT = ("optimiser", "replay", "exploration", "target")


def foreign_environment(manifest: Mapping[str, Any]) -> str | None:
    """Return why the environment of a run cannot be played here; None if it can."""
    config = manifest["config"]
    for path, name in _foreign(config).items():
        field = path.partition(".")[0]
        if field in _ENVIRONMENT:
            what = _ENVIRONMENT[field]
            return f"{what} {name} is code of yours, which this page does not import"
    if config.get("policy"):
        return f"this run follows policy {config['policy']}, which this page does not import"
    return None


def readable(path: Path, manifest: dict[str, Any]) -> tuple[Config, EnvSpec]:
    """Return a configuration with the laws of a run, made of built-in parts only."""
    config = dict(manifest["config"])
    fields = {field.partition(".")[0] for field in _foreign(config)}
    foreign = [f"{kind} {config[kind]['name']}" for kind in _LAWS_NEED if kind in fields]
    if foreign:
        raise UmdqnError(
            f"{', '.join(foreign)}: code of yours, which this page does not import; umdqn laws "
            "and umdqn watch draw the laws of this run"
        )
    config |= {kind: {"name": DEFAULTS[kind]} for kind in _LAWS_DO_NOT if kind in fields}
    config["policy"] = ""
    if "metric" not in fields:
        return parse_manifest(path, manifest | {"config": config})
    return _with_any_metric(path, manifest | {"config": config})


def _with_any_metric(path: Path, manifest: dict[str, Any]) -> tuple[Config, EnvSpec]:
    """Replace a user's metric by the first built-in one that goes with the representation."""
    first: UmdqnError | None = None
    for name in KINDS["metric"]:
        config = manifest["config"] | {"metric": {"name": name}}
        try:
            return parse_manifest(path, manifest | {"config": config})
        except UmdqnError as error:
            first = first or error
    assert first is not None
    raise first


def _foreign(config: Mapping[str, Any]) -> dict[str, str]:
    """Return what a configuration names that is not built in, by field."""
    found = imports_of(config) | objects_of(config)
    for kind, table in KINDS.items():
        name = config[kind].get("name") if isinstance(config[kind], Mapping) else None
        if not isinstance(name, str):
            raise UmdqnError(f"the manifest is corrupt: {kind} is {config[kind]!r}")
        if name not in table:
            # Registered under this name in the process that trained.
            found.setdefault(kind, name)
    return found
