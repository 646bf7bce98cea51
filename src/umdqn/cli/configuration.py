"""Printing configurations: every field, its value, and who set it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from umdqn.cli.tables import print_table
from umdqn.runs.config import Config
from umdqn.runs.fields import leaves, to_dict
from umdqn.runs.provenance import set_by
from umdqn.specs import Domain


def print_config(config: Config, overrides: Mapping[str, Any], as_json: bool) -> None:
    """Print a configuration as a table, or as the JSON object that a manifest holds."""
    if as_json:
        print(json.dumps(to_dict(config)))
        return
    origin = set_by(config, overrides)
    rows = [(path, _typed(value), origin[path]) for path, _, value in leaves(config)]
    print_table(("field", "value", "set by"), rows)


def _typed(value: Any) -> str:
    """Return a value as it is typed on the command line."""
    if isinstance(value, Domain):
        return f"{value.low:g} {value.high:g}"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return str(value)
