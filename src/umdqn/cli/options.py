"""Options of the command line, one for every field of the configuration.

Help texts are read from source files, so that `--help` does not import JAX.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from umdqn.parts.describe import FieldHelp, PartHelp, describe
from umdqn.parts.ranges import Range
from umdqn.runs.aliases import ALIASES
from umdqn.runs.kinds import DEFAULTS, KINDS, purpose

_CONFIG = "umdqn.runs.config:Config"
_NESTED = {"evaluation": "umdqn.runs.config:Evaluation"}
_PREFIX = "field:"
_METAVARS = {"int": "INT", "float": "FLOAT", "str": "TEXT", "bool": "true|false"}


class Command(NamedTuple):
    """A command: what it does, and how its options are added to a parser."""

    name: str
    help: str
    run: Callable[[argparse.Namespace], None]
    add_options: Callable[[argparse.ArgumentParser, Sequence[str]], None]


def add_number(
    parser: argparse.ArgumentParser,
    name: str,
    text: str,
    allowed: Range,
    default: float | int | str,
    kind: type = int,
) -> None:
    """Add an option for a number of a range; a default that is text describes itself."""

    def read(value: str) -> Any:
        from umdqn.runs.values import read_number

        number = read_number(name, kind, value)
        dataclasses.replace(allowed, whole=kind is int).check(name, number)
        return number

    parser.add_argument(
        *dict.fromkeys((f"--{name.replace('_', '-')}", f"--{name}")),
        type=read,
        default=default if isinstance(default, kind) else None,
        metavar=_METAVARS[kind.__name__],
        help=_text(text, [str(allowed), f"default {default}"]),
    )


def given_fields(options: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of the configuration that were given on the command line."""
    return {
        name.removeprefix(_PREFIX): value
        for name, value in vars(options).items()
        if name.startswith(_PREFIX)
    }


def kind_of(action: argparse.Action) -> str:
    """Return what an option or argument is about: a field's dotted name, or a plain name."""
    return action.dest.removeprefix(_PREFIX).removeprefix("named_")


def add_fields(
    parser: argparse.ArgumentParser, tokens: Sequence[str], but: Sequence[str] = ()
) -> None:
    """Add an option for every field of the configuration, grouped by part."""
    shown = parser.add_argument_group(
        "configuration",
        "Defaults shown here are those of the classes. The algorithm and the preset override some\n"
        "of them, and options override both: --show-config prints the values that result.",
    )
    config = describe(_CONFIG)
    for field in config.fields:
        if field.name in KINDS or field.name in _NESTED or field.name in but:
            continue
        _add(shown, field.name, field.type, _text(field.text, [field.allowed, _default(field)]))
    for name, source in _NESTED.items():
        group = parser.add_argument_group(name, describe(source).summary)
        for field in describe(source).fields:
            text = _text(field.text, [field.allowed, _default(field)])
            _add(group, f"{name}.{field.name}", field.type, text)
    for field in config.fields:
        if field.name in KINDS:
            _add_part(parser, field, _members(field.name, tokens))


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Add the option that allows runs from elsewhere to import what they name."""
    parser.add_argument(
        "--trust",
        action="store_true",
        help="let runs from elsewhere import the code that they name (see SECURITY.md)",
    )


def _members(kind: str, tokens: Sequence[str]) -> dict[str, PartHelp]:
    """Describe all parts of a kind, and one that the command line names as `module:Class`."""
    table = KINDS[kind]
    members = {name: describe(table.source(name)) for name in table}
    for token, following in zip(tokens, [*tokens[1:], ""], strict=True):
        option, equals, value = token.partition("=")
        chosen = value if equals else following
        if option == f"--{kind}" and ":" in chosen:
            members[chosen] = describe(type(table.read(chosen)))
    return members


def _add_part(
    parser: argparse.ArgumentParser, choice: FieldHelp, members: dict[str, PartHelp]
) -> None:
    """Add the option that chooses a part, and the fields of all parts that can be chosen."""
    kind = choice.name
    width = max(map(len, members))
    listed = [f"  {name:{width}}  {part.summary}".rstrip() for name, part in members.items()]
    group = parser.add_argument_group(kind, "\n".join([purpose(kind), *listed]))
    default = DEFAULTS.get(kind)
    notes = [f"default {default}" if default else "", "also module:attribute"]
    _add(group, kind, "NAME", _text(choice.text, notes))
    paths = dict.fromkeys(field.name for part in members.values() for field in part.fields)
    for name in paths:
        owners = {
            owner: field
            for owner, part in members.items()
            for field in part.fields
            if field.name == name
        }
        types = {field.type for field in owners.values()}
        text = _merged(owners, len(members))
        _add(group, f"{kind}.{name}", types.pop() if len(types) == 1 else "VALUE", text)


def _merged(owners: dict[str, FieldHelp], members: int) -> str:
    """Return the help of a field that some of the parts have, each text once with its parts."""
    same = {(field.text, field.allowed, _default(field)) for field in owners.values()}
    if len(owners) == members and len(same) == 1:
        text, allowed, default = same.pop()
        return _text(text, ["all" if members > 1 else "", allowed, default])
    texts: dict[tuple[str, str], dict[str, list[str]]] = {}
    for owner, field in owners.items():
        defaults = texts.setdefault((field.text, field.allowed), {})
        defaults.setdefault(_default(field), []).append(owner)
    return " ".join(
        _text(text, [allowed, *(_owned(names, default) for default, names in defaults.items())])
        for (text, allowed), defaults in texts.items()
    )


def _owned(owners: Sequence[str], default: str) -> str:
    return ": ".join(filter(None, [", ".join(owners), default]))


def _text(text: str, notes: Sequence[str]) -> str:
    """Return a help text with notes in brackets; argparse wants per cents doubled."""
    noted = "; ".join(filter(None, notes))
    return " ".join(filter(None, [text, f"({noted})" if noted else ""])).replace("%", "%%")


def _default(field: FieldHelp) -> str:
    """Return the default as a user would type it, or "" if there is none to show."""
    written = field.default
    if written in ("", "''") or (written.endswith(")") and not written.startswith("(")):
        # The value of a call is not known without importing it.
        return ""
    if written in ("True", "False", "None"):
        return f"default {written.lower()}"
    if field.type in ("int", "float"):
        return f"default {written.replace('_', '')}"
    return "default " + written.strip("()'").replace("'", "").replace(", ", ",").rstrip(",")


def _add(group: argparse._ArgumentGroup, path: str, kind: str, text: str) -> None:
    kind = kind.removesuffix(" | None")
    names = [path, *(alias for alias, field in ALIASES.items() if field == path)]
    spelled = dict.fromkeys(
        f"--{each}" for name in names for each in (name, name.replace("_", "-"))
    )
    group.add_argument(
        *spelled,
        dest=f"{_PREFIX}{path}",
        nargs=2 if kind == "Domain" else None,
        metavar=("Z_MIN", "Z_MAX") if kind == "Domain" else _metavar(kind),
        default=argparse.SUPPRESS,
        help=text or None,
    )


def _metavar(kind: str) -> str:
    if kind.startswith("tuple"):
        return "N,N,..."
    return _METAVARS.get(kind, kind if "|" in kind or kind.isupper() else "VALUE")
