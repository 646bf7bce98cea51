"""References made from the code: fields of the configuration, commands, environments."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from umdqn.cli import main
from umdqn.envs.catalogue import CATALOGUE
from umdqn.parts.describe import FieldHelp, describe
from umdqn.runs.aliases import ADVICE, ALIASES
from umdqn.runs.kinds import DEFAULTS, KINDS, purpose

_CONFIG = "umdqn.runs.config:Config"
_EVALUATION = "umdqn.runs.config:Evaluation"
# Longest usage that is shown in full.
_LONG = 100


def configuration() -> str:
    """Return every field of the configuration as Markdown."""
    fields = describe(_CONFIG).fields
    lines = ["## Fields of a run", ""]
    for field in fields:
        if field.name not in KINDS and field.name != "evaluation":
            lines += _field(field.name, field)
    lines += ["## evaluation", "", describe(_EVALUATION).summary, ""]
    for field in describe(_EVALUATION).fields:
        lines += _field(f"evaluation.{field.name}", field)
    for field in fields:
        if field.name in KINDS:
            lines += _kind(field)
    return "\n".join(lines)


def _kind(choice: FieldHelp) -> list[str]:
    """Return a section on a kind of part: its choices, and the fields of each."""
    kind, table = choice.name, KINDS[choice.name]
    default = DEFAULTS.get(kind)
    known = f" Default `{default}`." if default else ""
    text = f"{choice.text}{known} Also `module:Class`."
    lines = [
        f"## {kind}",
        "",
        purpose(kind),
        "",
        f"(field-{kind})=",
        f"`{kind}` name of a part",
        f": {text}",
        "",
    ]
    for name in table:
        part = describe(table.source(name))
        lines += [f"(part-{kind}-{name})=", f"### `{name}`", "", part.summary, ""]
        for field in part.fields:
            lines += _field(f"{kind}.{field.name}", field)
    return lines


_SEEN: set[str] = set()


def _field(path: str, field: FieldHelp) -> list[str]:
    """Return a definition: name, type, default, range, help; the first of a name is its target."""
    target = [] if path in _SEEN else [f"(field-{path})="]
    _SEEN.add(path)
    notes = [field.type.replace("|", " or ").replace(" or  None", " or none")]
    if field.default:
        notes += [f"default {field.default.strip(chr(39)).lower() or 'empty'}"]
    notes += [field.allowed] if field.allowed else []
    return [*target, f"`{path}` {', '.join(notes)}", f": {field.text}", ""]


def parsers(command: str = "") -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of all commands by name; only that of `command` has its options."""
    _, found = main.build_parser([command] if command else [])
    return dict(found)


def command(name: str) -> str:
    """Return the help of a command as Markdown: usage and options, without those of fields."""
    parser = parsers(name)[name]
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    shown, fields = [], 0
    for action in parser._actions:
        if action.dest.startswith("field:"):
            fields += 1
        elif action.dest != "help":
            shown += list(_option(action))
    if len(usage) > _LONG:
        usage = " ".join([f"umdqn {name}", *_brief(parser), "[OPTION ...]"])
    lines = [f"(command-{name})=", f"## umdqn {name}", "", str(parser.description), ""]
    lines += ["```text", usage, "```", "", *shown]
    if fields:
        text = f"And every [field of the configuration](configuration.md) ({fields} options)"
        lines += [f"{text}: `--replay.capacity 5000`.", ""]
    return "\n".join(lines)


def _brief(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if not action.option_strings:
            name = str(action.metavar or action.dest)
            yield f"[{name}]" if action.nargs in ("?", "*") else name


def _option(action: argparse.Action) -> Iterator[str]:
    names = ", ".join(f"`{name}`" for name in action.option_strings)
    metavar = action.metavar
    value = " ".join(metavar) if isinstance(metavar, tuple) else metavar
    if not names:
        names = f"`{value or action.dest}`"
    elif action.nargs != 0:
        names += f" `{value or action.dest.upper()}`"
    if action.required and action.option_strings:
        names += " (required)"
    yield names
    yield f": {(action.help or '').replace('%%', '%')}"
    yield ""


def aliases() -> str:
    """Return the names that other libraries use, and what to use for those without a field."""
    lines = ["| name | field, or what to do |", "|---|---|"]
    lines += [f"| `{name}` | [`{path}`](#field-{path}) |" for name, path in ALIASES.items()]
    lines += [f"| `{name}` | {text} |" for name, text in ADVICE.items()]
    return "\n".join(lines)


def environments() -> str:
    """Return the table of environments that `umdqn envs` lists."""
    lines = ["| name | family | loop | needs |", "|---|---|---|---|"]
    for name, entry in CATALOGUE.items():
        loop = "compiled" if entry.compiled is not None else "host"
        needs = f"`umdqn[{entry.extra}]`" if entry.extra else ""
        lines.append(f"| `{name}` | {entry.family} | {loop} | {needs} |")
    return "\n".join(lines)


class _Configuration(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        _SEEN.clear()
        return self.parse_text_to_nodes(configuration(), allow_section_headings=True)


class _Aliases(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(aliases())


class _Commands(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        text = "\n".join(command(name) for name in parsers())
        return self.parse_text_to_nodes(text, allow_section_headings=True)


class _Environments(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(environments())


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("configuration-fields", _Configuration)
    app.add_directive("configuration-aliases", _Aliases)
    app.add_directive("all-commands", _Commands)
    app.add_directive("environment-table", _Environments)
