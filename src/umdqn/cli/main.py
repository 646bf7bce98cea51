"""The command line: reads arguments, runs a command, turns errors into one line."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence

from umdqn import __version__
from umdqn.cli import completion, exporting, listing, many, reading, training, viewing
from umdqn.cli.output import lasting_output
from umdqn.cli.parser import Parser, unknown_option
from umdqn.errors import Notice, UmdqnError, out_of_memory, unknown
from umdqn.text import visible

_INTERRUPTED = 130
_MODULES = (training, reading, viewing, exporting, many, listing, completion)


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
        known = out_of_memory(error) if isinstance(error, MemoryError) else visible(str(error))
        print(f"umdqn: {known}", file=sys.stderr)
        return 1
    except RuntimeError as error:
        # XLA's way to report that memory ran out.
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        print(f"umdqn: {out_of_memory(error)}", file=sys.stderr)
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
    if command is None and tokens[:1] in (["-h"], ["--help"]) and len(tokens) > 1:
        # `umdqn --help train` is `umdqn train --help`.
        return _run([*tokens[1:2], "--help", *tokens[2:]])
    parser, commands = build_parser(tokens)
    if command is not None and command not in commands:
        raise unknown("command", command, commands)
    options, extra = parser.parse_known_args(tokens)
    for token in extra:
        if token.startswith("--"):
            raise unknown_option(token.partition("=")[0], commands.get(options.command, parser))
    if extra:
        parser.error(f"unexpected argument {extra[0]!r}")
    if not options.command:
        parser.print_help()
        return 0
    _print_notices()
    with lasting_output():
        options.run(options)
    return 0


def build_parser(tokens: Sequence[str]) -> tuple[Parser, dict[str, Parser]]:
    """Build the parser; only the command that is called gets its options."""
    parser = Parser(prog="umdqn")
    parser.description = "Distributional reinforcement learning with continuous laws of the return."
    parser.add_argument("--version", action="version", version=f"umdqn {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for module in _MODULES:
        for command in module.COMMANDS:
            sub = subparsers.add_parser(command.name, help=command.help, description=command.help)
            sub.set_defaults(run=command.run)
            if tokens[:1] == [command.name]:
                command.add_options(sub, tokens)
    return parser, dict(subparsers.choices)


def _print_notices() -> None:
    """Print every notice, also one that was printed before."""
    warnings.simplefilter("always", Notice)
