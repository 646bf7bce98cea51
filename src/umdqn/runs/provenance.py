"""Where the values of a configuration come from."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from umdqn.agents.algorithms import ALGORITHMS
from umdqn.runs.config import Config
from umdqn.runs.fields import leaves, named_fields
from umdqn.runs.kinds import DEFAULTS
from umdqn.specs import Keywords

_ARGUMENTS = ("env", "agent", "preset")
_OF_ENVIRONMENT = ("discount", "domain")


def set_by(config: Config, overrides: Mapping[str, Any]) -> dict[str, str]:
    """Return what set each field: argument, option, environment, agent, preset or default."""
    given = named_fields(overrides)
    algorithm = ALGORITHMS[config.agent]
    of_agent = {"representation", "metric", *algorithm.fields}
    found = {}
    for path, _, value in leaves(config):
        if path in _ARGUMENTS:
            found[path] = "argument"
        elif path in given or (path.startswith("env_kwargs") and value != Keywords()):
            # No preset has arguments of environments.
            found[path] = "option"
        elif path in _OF_ENVIRONMENT:
            found[path] = "environment"
        elif path in of_agent:
            found[path] = "agent"
        else:
            found[path] = "default" if value == _default(config, path) else "preset"
    return found


def _default(config: Config, path: str) -> Any:
    """Return the default of a field of the parts that are chosen."""
    if path in DEFAULTS:
        return DEFAULTS[path]
    *owners, name = path.split(".")
    owner: Any = config
    for each in owners:
        owner = getattr(owner, each)
    return {field.name: field.default for field in dataclasses.fields(owner)}[name]
