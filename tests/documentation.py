"""Code blocks of pages, and how they are run: a page's blocks in order, in one directory."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from umdqn.agents.algorithms import ALGORITHMS
from umdqn.cli.main import build_parser, main
from umdqn.sweeps.plan import sweep_of

ROOT = Path(__file__).parents[1]
_FENCE = re.compile(r"^```(\w+)([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w/]+\.(?:py|toml))\n")
LANGUAGES = ("python", "bash", "toml")
MARKS = {"checked", "slow", "sb3", "minatar"}
"""Words after the language. `checked`: is read and not run, since it takes hours, the network or a
cluster; `slow`: takes minutes; others name a package that has to be there."""


class Block(NamedTuple):
    """A block of code on a page."""

    language: str
    marks: frozenset[str]
    text: str

    @property
    def file(self) -> str | None:
        """The name of the file that the block is, if its first line names one."""
        found = _FILE.match(self.text)
        return found[1] if found else None

    def write(self) -> bool:
        """Write the file that the block is; return whether it is one."""
        if self.file is not None:
            Path(self.file).write_text(self.text)
            importlib.invalidate_caches()
        return self.file is not None


def pages() -> list[Path]:
    """Return README and every page that has blocks."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in found if "_build" not in path.parts and blocks(path)]


def blocks(path: Path) -> list[Block]:
    """Return the blocks of a page that are code."""
    return [
        Block(language, frozenset(marks.split()), text)
        for language, marks, text in _FENCE.findall(path.read_text(encoding="utf-8"))
        if language in LANGUAGES
    ]


def commands(block: Block) -> Iterator[list[str]]:
    """Yield the commands of a block as words."""
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words


def run_page(path: Path, skipped: set[str]) -> None:
    """Run the blocks of a page in the working directory, but for those with a mark to be skipped.

    Commands of umdqn run in this process, as their entry point does, to share compiled programs.
    """
    names: dict[str, Any] = {"__name__": "__page__"}
    for number, block in enumerate(blocks(path)):
        if block.write() or block.marks & skipped:
            continue
        if block.language == "python":
            exec(compile(block.text, f"{path.name}, block {number}", "exec"), names)
        else:
            for words in commands(block):
                _run(words)


def _run(words: list[str]) -> None:
    if words[0] == "umdqn":
        try:
            code = main(words[1:])
        except SystemExit as end:  # --version, --help
            code = int(end.code or 0)
    else:
        code = subprocess.run(words, check=False, timeout=600).returncode
    assert code == 0, f"{shlex.join(words)}: exit code {code}"


def check(block: Block) -> None:
    """Raise unless a block can be read: Python that parses, commands whose options exist."""
    if block.language == "python":
        ast.parse(block.text)
    elif block.language == "toml":
        sweep_of(tomllib.loads(block.text)).jobs()
    elif block.language == "bash":
        for words in commands(block):
            if words[0] == "umdqn":
                _read(words[1:])


def _read(words: list[str]) -> None:
    """Read a command as the command line does, and do nothing with it."""
    if words[0].startswith("-"):
        return
    parser, known = build_parser(words)
    options, extra = parser.parse_known_args(words)
    assert not extra, f"umdqn {shlex.join(words)}: unknown {extra}"
    assert words[0] in known
    agents = getattr(options, "agent", None) or []
    for agent in [agents] if isinstance(agents, str) else agents:
        assert agent in ALGORITHMS


def members_of_classes() -> dict[str, set[str]]:
    """Return what the classes of the package have, by name: methods, fields, what they inherit."""
    own: dict[str, set[str]] = {}
    bases: dict[str, list[str]] = {}
    for path in (ROOT / "src" / "umdqn").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                own.setdefault(node.name, set()).update(_members(node))
                bases.setdefault(node.name, []).extend(
                    name.id for name in node.bases if isinstance(name, ast.Name)
                )

    def members(name: str) -> set[str]:
        return own.get(name, set()).union(*map(members, bases.get(name, [])))

    return {name: members(name) for name in own}


def _members(node: ast.ClassDef) -> Iterator[str]:
    for item in node.body:
        if isinstance(item, ast.FunctionDef):
            yield item.name
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            yield item.target.id
