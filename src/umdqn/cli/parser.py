"""Parsers with one-line errors, and with help on everything, on a part, or on one option."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from umdqn.errors import UmdqnError, unknown
from umdqn.runs.aliases import advice_on


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and whose `--help` can be about a part of it."""

    def __init__(self, **settings: Any):
        super().__init__(**settings, allow_abbrev=False, add_help=False, formatter_class=Formatter)
        self.add_argument(
            "-h",
            "--help",
            action=_Help,
            nargs="?",
            default=argparse.SUPPRESS,
            metavar="NAME",
            help="show this help and exit; with a NAME, that of one group or option alone",
        )

    def error(self, message: str) -> NoReturn:
        raise UmdqnError(f"{message} (see {self.prog} --help)")

    @property
    def options(self) -> dict[str, argparse.Action]:
        """Every spelling of every option."""
        return self._option_string_actions

    @property
    def groups(self) -> dict[str, argparse._ArgumentGroup]:
        """Named groups of options."""
        return {group.title: group for group in self._action_groups[2:] if group.title}

    @property
    def positionals(self) -> list[argparse.Action]:
        """What is given without a name, in its order."""
        return self._get_positional_actions()

    @property
    def commands(self) -> dict[str, str]:
        """Commands below this parser, and what each is for."""
        return {
            choice.dest: choice.help or ""
            for action in self.positionals
            if isinstance(action, argparse._SubParsersAction)
            for choice in action._get_subactions()
        }

    def help_on(self, name: str) -> str:
        """Return the help on one group, or on one option."""
        formatter = self._get_formatter()
        option = self.options.get(f"--{name.lstrip('-')}")
        if name in self.groups:
            group = self.groups[name]
            formatter.start_section(name)
            formatter.add_text(group.description)
            formatter.add_arguments(group._group_actions)
            formatter.end_section()
        elif option is not None:
            formatter.start_section("option")
            formatter.add_arguments([option])
            formatter.end_section()
        else:
            names = (option.lstrip("-") for option in self.options)
            raise unknown("group or option", name, {*self.groups, *names}, f"{self.prog} --help")
        return formatter.format_help()


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of descriptions, and shows each option in one spelling, with its aliases."""

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return super()._format_action_invocation(action)
        names = ", ".join(spellings(action))
        if action.nargs == 0:
            return names
        return f"{names} {self._format_args(action, action.dest.upper())}"


def spellings(action: argparse.Action) -> list[str]:
    """Return the names of an option that help shows: fields as in Python, aliases with hyphens."""
    names = list(action.option_strings)
    first, rest = names[0], names[1:]
    dashed = first.replace("_", "-")
    return [first, *(name for name in rest if name != dashed and "_" not in name)]


class _Help(argparse.Action):
    """Prints help, on what is named if anything is, and ends the program."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        assert isinstance(parser, Parser)
        if values is None:
            parser.print_help()
        else:
            print(parser.help_on(str(values)), end="")
        parser.exit()


def unknown_option(name: str, parser: Parser) -> UmdqnError:
    """Build the error for an option that does not exist: what is meant instead, or near it."""
    advice = advice_on(name.lstrip("-"))
    if advice is not None and parser.groups:
        return UmdqnError(f"there is no option {name}: {advice}")
    known = {shown for action in parser.options.values() for shown in spellings(action)}
    return unknown("option", name, known, f"{parser.prog} --help")
