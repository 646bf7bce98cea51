"""The command line: reads arguments, runs a command, turns errors into one line."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from umdqn import __version__
from umdqn.cli import listing, many, reading, training, viewing
from umdqn.cli.options import Formatter, Parser, option_names, unknown_option
from umdqn.errors import Notice, UmdqnError, one_line, unknown

_INTERRUPTED = 130
_MODULES = (training, reading, viewing, many, listing)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code: 0 unless something went wrong."""
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(tokens)
    except UmdqnError as error:
        print(f"umdqn: {error}", file=sys.stderr)
        return _INTERRUPTED if _is_interruption(error) else 1
    except (OSError, MemoryError) as error:
        if isinstance(error, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        print(f"umdqn: {error or 'out of memory'}", file=sys.stderr)
        return 1
    except RuntimeError as error:
        # XLA's way to report that memory ran out.
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        print(f"umdqn: out of memory: {one_line(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("umdqn: interrupted", file=sys.stderr)
        return _INTERRUPTED


def _is_interruption(error: UmdqnError) -> bool:
    # A mistake on the command line should not wait for the import of the trainer.
    trainer = sys.modules.get("umdqn.runs.trainer")
    return trainer is not None and isinstance(error, trainer.Interrupted)


def _run(tokens: list[str]) -> int:
    command = tokens[0] if tokens and not tokens[0].startswith("-") else None
    parser, commands = _parser(tokens)
    if command is not None and command not in commands:
        raise unknown("command", command, commands)
    options, extra = parser.parse_known_args(tokens)
    for token in extra:
        if token.startswith("--"):
            names = option_names(commands.get(options.command, parser))
            raise unknown_option(token.removeprefix("--").partition("=")[0], names)
    if extra:
        parser.error(f"unexpected argument {extra[0]!r}")
    if not options.command:
        parser.print_help()
        return 0
    _print_notices()
    options.run(options)
    return 0


def _parser(tokens: Sequence[str]) -> tuple[Parser, dict[str, argparse.ArgumentParser]]:
    """Build the parser; only the command that is called gets its options."""
    parser = Parser(prog="umdqn", allow_abbrev=False, formatter_class=Formatter)
    parser.description = "Distributional reinforcement learning with continuous laws of the return."
    parser.add_argument("--version", action="version", version=f"umdqn {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND")
    for module in _MODULES:
        for command in module.COMMANDS:
            sub = subparsers.add_parser(
                command.name,
                help=command.help,
                description=command.help,
                allow_abbrev=False,
                formatter_class=Formatter,
            )
            sub.set_defaults(run=command.run)
            if tokens[:1] == [command.name]:
                command.add_options(sub, tokens)
    return parser, dict(subparsers.choices)


def _print_notices() -> None:
    """Print notices as lines of their own instead of as Python warnings."""
    usual = warnings.showwarning

    def show(message: Any, category: type[Warning], *where: Any, **rest: Any) -> None:
        if issubclass(category, Notice):
            print(f"note: {message}", file=sys.stderr)
        else:
            usual(message, category, *where, **rest)

    warnings.showwarning = show
    warnings.simplefilter("always", Notice)
