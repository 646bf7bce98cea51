"""The command `export`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from umdqn.cli.options import Command, add_number
from umdqn.cli.reading import add_run, loaded
from umdqn.parts.ranges import Range


def _add_export(parser: argparse.ArgumentParser, tokens: Sequence[str]) -> None:
    add_run(parser)
    parser.add_argument("--out", required=True, type=Path, help="directory to write")
    add_number(parser, "seed", "Seed to export.", Range(least=0), "the first")


def export(options: argparse.Namespace) -> None:
    """Write an agent in a form that runs without JAX."""
    from umdqn.export.exporting import export as write

    for path in write(loaded(options), options.out, options.seed):
        print(path)


COMMANDS = (
    Command(
        "export", "Write laws that run with NumPy alone, and a model card.", export, _add_export
    ),
)
"""Commands that turn runs into other forms."""
