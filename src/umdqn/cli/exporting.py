"""The command `export`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from umdqn.cli.options import Command
from umdqn.cli.reading import add_run, loaded


def _add_export(parser: argparse.ArgumentParser, tokens: Sequence[str]) -> None:
    add_run(parser)
    parser.add_argument("--out", required=True, type=Path, help="directory to write")
    parser.add_argument("--seed", help="seed to export (default: the first)")


def export(options: argparse.Namespace) -> None:
    """Write an agent in a form that runs without JAX."""
    from umdqn.export.exporting import export as write
    from umdqn.runs.values import read_number

    seed = None if options.seed is None else read_number("seed", int, options.seed)
    for path in write(loaded(options), options.out, seed):
        print(path)


COMMANDS = (
    Command(
        "export", "Write laws that run with NumPy alone, and a model card.", export, _add_export
    ),
)
"""Commands that turn runs into other forms."""
