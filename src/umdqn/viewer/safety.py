"""What a run names that is a user's code: the page imports none of it, and says so.

Laws need representation, decision, torso and support. Other parts of users are replaced by
built-in ones, which changes no law: they matter in training only.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from umdqn.errors import UmdqnError
from umdqn.parts.objects import PREFIX
from umdqn.runs.config import Config
from umdqn.runs.kinds import DEFAULTS, KINDS
from umdqn.runs.manifests import parse_manifest
from umdqn.specs import EnvSpec

_LAWS_NEED = ("representation", "decision", "torso", "support")
_LAWS_DO_NOT = ("optimiser", "replay", "exploration", "target")


def foreign_environment(manifest: Mapping[str, Any]) -> str | None:
    """Return why the environment of a run cannot be played here; None if it can."""
    env, policy = str(manifest["config"]["env"]), manifest["config"].get("policy")
    if ":" in env or env.startswith(PREFIX):
        return f"environment {env} is code of yours, which this page does not import"
    if policy:
        return f"this run follows policy {policy}, which this page does not import"
    return None


def foreign_parts(manifest: Mapping[str, Any]) -> list[str]:
    """Return the parts without which there are no laws and that this page does not import."""
    return [kind for kind in _LAWS_NEED if _is_foreign(kind, manifest["config"][kind])]


def readable(path: Path, manifest: dict[str, Any]) -> tuple[Config, EnvSpec]:
    """Return a configuration with the laws of a run, made of built-in parts only."""
    config = dict(manifest["config"])
    foreign = [f"{kind} {config[kind].get('name')}" for kind in foreign_parts(manifest)]
    if foreign:
        raise UmdqnError(
            f"{', '.join(foreign)}: code of yours, which this page does not import; umdqn laws "
            "and umdqn watch draw the laws of this run"
        )
    for kind in _LAWS_DO_NOT:
        if _is_foreign(kind, config[kind]):
            config[kind] = {"name": DEFAULTS[kind]}
    config["policy"] = ""
    if not _is_foreign("metric", config["metric"]):
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


def _is_foreign(kind: str, part: Any) -> bool:
    """Return whether the data of a part leads to code that is not built in."""
    if not isinstance(part, Mapping) or not isinstance(part.get("name"), str):
        raise UmdqnError(f"the manifest is corrupt: {kind} is {part!r}")
    if part["name"] not in KINDS[kind] or "class" in part:
        return True
    # A part that holds an object of the user's names it in a field.
    texts = [value for field, value in part.items() if field != "name" and isinstance(value, str)]
    return any(":" in text or text.startswith(PREFIX) for text in texts)
