"""The commands that list what there is: `agents` and `envs`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from umdqn.cli.options import Command
from umdqn.cli.tables import print_table


def agents(options: argparse.Namespace) -> None:
    """List the agents."""
    from umdqn.agents.algorithms import ALGORITHMS

    rows = [
        (name, algorithm.representation, algorithm.metric, algorithm.summary)
        for name, algorithm in ALGORITHMS.items()
    ]
    print_table(("agent", "representation", "metric", ""), rows)


def envs(options: argparse.Namespace) -> None:
    """List the environments."""
    from umdqn.envs.catalogue import CATALOGUE
    from umdqn.envs.wrappers import WRAPPERS

    rows = [
        (
            name,
            listing.family,
            f"[{listing.domain.low:g}, {listing.domain.high:g}]",
            "compiled" if listing.compiled else "host",
            f"umdqn[{listing.extra}]" if listing.extra else "",
        )
        for name, listing in CATALOGUE.items()
    ]
    print_table(("environment", "presets", "domain", "loop", "needs"), rows)
    print(
        "Also any ALE game (ALE/Breakout), any Gymnasium id, and module:attribute, with discrete "
        "actions; observations may be a Box, choices, or a Dict or Tuple of these."
    )
    print(f"Wrappers: {', '.join(WRAPPERS)}, and module:Class; arguments as NAME:key=value.")


def _no_options(parser: argparse.ArgumentParser, tokens: Sequence[str]) -> None:
    """Add nothing."""


COMMANDS = (
    Command("agents", "List the agents.", lambda options: agents(options), _no_options),
    Command("envs", "List the environments.", lambda options: envs(options), _no_options),
)
"""Commands that list."""
