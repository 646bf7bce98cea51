"""Where the modules that a run names were when it was made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from umdqn.envs.wrappers import name_and_arguments
from umdqn.parts.imports import module_file, remember_place
from umdqn.parts.objects import PREFIX
from umdqn.runs.config import Config
from umdqn.runs.kinds import KINDS


def modules_of(config: Config) -> dict[str, str | None]:
    """Return the modules that a configuration names as `module:attribute`, with their files.

    None stands for a module that has no file, or that this process has not imported.
    """
    return {path.partition(":")[0]: module_file(path) for path in _paths(config)}


def _paths(config: Config) -> Iterator[str]:
    wrappers = [name_and_arguments(text)[0] for text in config.wrappers]
    for name in (config.env, config.policy, *wrappers):
        if ":" in name and not name.startswith(PREFIX):
            yield name
    for kind, table in KINDS.items():
        path = table.path_of(getattr(config, kind))
        if path is not None:
            yield path


def remember_modules(manifest: dict[str, Any]) -> None:
    """Note where a manifest's modules were, so that they are found there; imports nothing."""
    recorded = manifest.get("modules")
    for module, file in recorded.items() if isinstance(recorded, dict) else ():
        if isinstance(file, str):
            remember_place(module, file)
