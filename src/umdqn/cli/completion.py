"""The command `completion`, and what shells ask it when a user presses Tab."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Sequence

from umdqn.cli.options import Command, kind_of
from umdqn.cli.parser import Parser, spellings
from umdqn.cli.scripts import SCRIPTS
from umdqn.errors import UmdqnError
from umdqn.runs.kinds import KINDS

Candidate = tuple[str, str]
"""A word that may come next, and what it is."""


def complete(line: str) -> list[Candidate]:
    """Return the words that can complete a command line up to the cursor, best empty for files."""
    from umdqn.cli.main import build_parser

    *before, current = _words(line)[1:] or [""]
    parser, commands = build_parser(before)
    if not before:
        about = parser.commands
        found = [*about.items(), *_options(parser, current)]
    elif before[0] in commands:
        found = _of_command(commands[before[0]], before[1:], current)
    else:
        found = []
    return [each for each in found if each[0].startswith(current)]


def _words(line: str) -> list[str]:
    """Split a line as a shell does; the last word, which may be empty, is not finished."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:
        # A quote that is still open.
        words.append(lexer.token)
        return words
    return [*words, ""] if line[-1:].isspace() or not words else words


def _of_command(parser: Parser, before: Sequence[str], current: str) -> list[Candidate]:
    if current.startswith("-") and "=" in current:
        name, _, _ = current.partition("=")
        return [(f"{name}={value}", about) for value, about in _of_option(parser, name)]
    if current.startswith("-"):
        return _options(parser, current)
    asked = _open_option(parser, before)
    if asked is not None:
        return _of_option(parser, asked)
    given = sum(not word.startswith("-") for word in _without_values(parser, before))
    positionals = parser.positionals
    return _values(positionals[min(given, len(positionals) - 1)]) if positionals else []


def _options(parser: Parser, current: str) -> list[Candidate]:
    """Return the options that begin as the current word does; other spellings if none does."""
    if not current.startswith("-"):
        return []
    shown = _shown(parser)
    if any(name.startswith(current) for name, _ in shown):
        return shown
    return [(name, _about(action)) for name, action in parser.options.items()]


def _shown(parser: Parser) -> list[Candidate]:
    actions = dict.fromkeys(parser.options.values())
    return [(name, _about(action)) for action in actions for name in spellings(action)]


def _about(action: argparse.Action) -> str:
    return (action.help or "").replace("%%", "%")


def _open_option(parser: Parser, before: Sequence[str]) -> str | None:
    """Return the option whose value comes next, if one does."""
    for count, word in enumerate(reversed(before)):
        action = parser.options.get(word)
        if action is not None:
            takes = {None: 1, "?": 1, "+": len(before) + 1, "*": len(before) + 1}
            most = action.nargs if isinstance(action.nargs, int) else takes[action.nargs]
            return word if count < most else None
    return None


def _without_values(parser: Parser, before: Sequence[str]) -> list[str]:
    """Return the words of a command line that are no values of options."""
    return [word for at, word in enumerate(before) if _open_option(parser, before[:at]) is None]


def _of_option(parser: Parser, name: str) -> list[Candidate]:
    action = parser.options.get(name)
    if action is None:
        return []
    if "--help" in action.option_strings:
        groups = [(name, group.description or "") for name, group in parser.groups.items()]
        names = (name.lstrip("-") for name, _ in _shown(parser))
        return [*groups, *_plain(name for name in names if name not in parser.groups)]
    return _values(action)


def _values(action: argparse.Action) -> list[Candidate]:
    """Return the values that an option or a positional argument can have, if they have names."""
    from umdqn.agents.algorithms import ALGORITHMS

    meant = kind_of(action)
    if action.choices is not None:
        return _plain(map(str, action.choices))
    if isinstance(action.metavar, str) and "|" in action.metavar:
        return _plain(action.metavar.split("|"))
    if meant in KINDS:
        return _plain(KINDS[meant])
    if meant == "agent":
        return [(name, algorithm.summary) for name, algorithm in ALGORITHMS.items()]
    return _plain(_environments()) if meant == "env" else []


def _environments() -> list[str]:
    from umdqn.envs.catalogue import CATALOGUE

    return list(CATALOGUE)


def _plain(names: Iterable[str]) -> list[Candidate]:
    return [(name, "") for name in names]


def _add_completion(parser: argparse.ArgumentParser, tokens: Sequence[str]) -> None:
    parser.usage = "%(prog)s SHELL"
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "shell", nargs="?", choices=list(SCRIPTS), metavar="SHELL", help=" or ".join(SCRIPTS)
    )
    parser.add_argument("--line", help="print the words that can complete a command line")


_EXAMPLES = """examples:
  umdqn completion bash >> ~/.bashrc
  umdqn completion zsh > "${fpath[1]}/_umdqn"
  umdqn completion fish > ~/.config/fish/completions/umdqn.fish
"""


def completion(options: argparse.Namespace) -> None:
    """Print the script of a shell, or the words that can come next."""
    if options.line is not None:
        for word, about in complete(options.line):
            print(f"{word}\t{about.splitlines()[0] if about else ''}".rstrip())
    elif options.shell is None:
        raise UmdqnError(f"name a shell: {', '.join(SCRIPTS)}")
    else:
        print(SCRIPTS[options.shell], end="")


COMMANDS = (
    Command(
        "completion", "Let a shell complete commands and options.", completion, _add_completion
    ),
)
"""The command for shells."""
