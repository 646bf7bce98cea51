"""The command that shows runs in a browser: `view`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from umdqn.cli.options import Command, add_number
from umdqn.extras import require
from umdqn.parts.ranges import Range

_HOST, _PORT = "127.0.0.1", 8765


def _add_view(parser: argparse.ArgumentParser, tokens: Sequence[str]) -> None:
    parser.add_argument(
        "directories",
        metavar="RUN",
        nargs="*",
        type=Path,
        help="run, or directory of runs; several are shown together (default runs)",
    )
    text = "Port to listen at; 0 takes any that is free."
    add_number(parser, "port", text, Range(least=0, most=65_535), _PORT)
    parser.add_argument(
        "--host",
        default=_HOST,
        help=f"address to listen at (default {_HOST}: this machine only; others need a token, "
        "which is printed)",
    )
    parser.add_argument("--open", action="store_true", help="open the page in a browser")


def view(options: argparse.Namespace) -> None:
    """Serve the page until Ctrl-C."""
    require("umdqn view", "view", ("starlette", "uvicorn"))
    from umdqn.viewer.server import open_browser, site, yield_to_training

    paths = options.directories or [Path("runs")]
    page = site(paths, options.host, options.port)
    found = len(page.roots.search())
    shown = ", ".join(map(str, paths))
    runs = f"{found:,} run" + "s" * (found != 1) if found else "no runs yet"
    print(f"{shown}: {runs}; Ctrl-C stops", file=sys.stderr)
    print(page.address, flush=True)
    if options.open:
        open_browser(page.address)
    yield_to_training()
    page.run()


COMMANDS = (
    Command("view", "Show runs, their laws and their curves in a browser.", view, _add_view),
)
"""The command that serves the page."""
