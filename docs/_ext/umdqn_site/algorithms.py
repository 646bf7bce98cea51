"""Settings of an algorithm as tables: from its parts, its entry and the presets."""

from __future__ import annotations

import dataclasses
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from umdqn.agents.algorithms import ALGORITHMS
from umdqn.parts.describe import describe
from umdqn.runs.config import Config
from umdqn.runs.configure import configure
from umdqn.runs.fields import leaves, name_of
from umdqn.runs.kinds import KINDS
from umdqn.specs import Domain

COLUMNS = {
    ("tuned", "grid-world"): "grid world",
    ("tuned", "CartPole-v1"): "CartPole",
    ("paper", "grid-world"): "grid world",
    ("paper", "CartPole-v1"): "CartPole",
}
"""Configurations that are shown, by preset and environment."""
_OWN = ("representation", "metric")
_NEVER = ("env", "agent", "preset", "policy", "seeds", "seed")


def settings(agent: str) -> str:
    """Return the settings of an algorithm as Markdown: its own parts, then what presets set."""
    found = {key: _values(configure(key[1], agent, key[0])) for key in COLUMNS}
    paths = list(dict.fromkeys(path for values in found.values() for path in values))
    own = [path for path in paths if path.split(".")[0] in _OWN]
    rest = [path for path in paths if path not in own and path not in _NEVER]
    varied = [path for path in rest if _varies(path, found, agent)]
    head = "| setting | default | " + " | ".join(
        f"{preset}: {name}" for (preset, _), name in COLUMNS.items()
    )
    rule = "|---|---|" + "---|" * len(COLUMNS)
    lines = [head + " |", rule]
    for path in [*own, *varied]:
        cells = [_shown(values.get(path)) for values in found.values()]
        lines.append(
            f"| [`{path}`](#field-{path}) | {_default(path, agent)} | {' | '.join(cells)} |"
        )
    return "\n".join(lines).replace("](#field-", "](/reference/configuration.md#field-")


def _values(config: Config) -> dict[str, Any]:
    return {path: value for path, _, value in leaves(config)}


def _varies(path: str, found: dict[tuple[str, str], dict[str, Any]], agent: str) -> bool:
    shown = {_shown(values.get(path)) for values in found.values()}
    return len(shown) > 1 or shown != {_default(path, agent)}


def _default(path: str, agent: str) -> str:
    """Return the default of a field: that of its class, whatever algorithm and preset say."""
    kind, _, field = path.partition(".")
    if kind in _OWN and not field:
        return _shown(getattr(ALGORITHMS[agent], kind))
    if not field:
        values = {f.name: f for f in dataclasses.fields(Config)}
        if kind in KINDS:
            return _shown(name_of(kind, values[kind].default_factory()))  # type: ignore[misc]
        default = values[kind].default
        return "" if default is dataclasses.MISSING else _shown(default)
    if kind not in KINDS:
        return _shown(getattr(values_of(kind), field))
    config = configure("grid-world", agent)
    part = getattr(config, kind)
    names = {f.name: f.default for f in dataclasses.fields(part)}
    for table in (part, *(KINDS[kind][name]() for name in KINDS[kind])):
        names |= {f.name: f.default for f in dataclasses.fields(table) if f.name not in names}
    return _shown(names[field])


def values_of(name: str) -> Any:
    """Return the default of a nested group of fields, such as `evaluation`."""
    return next(f.default for f in dataclasses.fields(Config) if f.name == name)


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`{','.join(map(str, value))}`"
    if isinstance(value, Domain):
        return f"`{value.low:g} {value.high:g}`"
    if not str(value):
        return "-"
    return f"`{value:,}`" if isinstance(value, int) else f"`{value}`"


def summary() -> str:
    """Return the table of all algorithms."""
    lines = ["| agent | representation | metric | |", "|---|---|---|---|"]
    for name, algorithm in ALGORITHMS.items():
        parts = [
            f"[`{value}`](/reference/configuration.md#part-{kind}-{value})"
            for kind, value in zip(_OWN, algorithm[:2], strict=True)
        ]
        page = f"[`{name}`](/algorithms/{name}.md)"
        lines.append(f"| {page} | {' | '.join(parts)} | {algorithm.summary} |")
    return "\n".join(lines)


def parts_of(agent: str) -> str:
    """Return one line on each part that names an algorithm."""
    named = ALGORITHMS[agent]
    lines = []
    for kind in _OWN:
        name = getattr(named, kind)
        text = describe(KINDS[kind].source(name)).summary
        target = f"/reference/configuration.md#part-{kind}-{name}"
        lines.append(f"- {kind} [`{name}`]({target}): {text}")
    return "\n".join(lines)


class _Settings(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        agent = self.arguments[0]
        return self.parse_text_to_nodes(f"{parts_of(agent)}\n\n{settings(agent)}")


class _Summary(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(summary())


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("algorithm-settings", _Settings)
    app.add_directive("algorithm-table", _Summary)
