"""Help texts of parts, read from their source without importing it.

Importing JAX takes half a second; `umdqn train --help` should not. A dataclass is therefore
described from its syntax tree: names, types, defaults and docstrings of its fields.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from umdqn.parts.ranges import Range, ranges


class FieldHelp(NamedTuple):
    """What a user is told of one field."""

    name: str
    type: str
    """The annotation as written; the alternatives `a|b` of a `Literal`."""
    default: str
    """The default as written, or "" if there is none."""
    text: str
    allowed: str = ""
    """The declared range, or ""."""


class PartHelp(NamedTuple):
    """What a user is told of a dataclass."""

    summary: str
    """The first line of its docstring."""
    fields: tuple[FieldHelp, ...]


def describe(source: str | type) -> PartHelp:
    """Describe a dataclass, given as `module:Class` or as the class itself."""
    path = source if isinstance(source, str) else f"{source.__module__}:{source.__qualname__}"
    module, _, name = path.partition(":")
    try:
        return _described(module, name)
    except (OSError, KeyError, SyntaxError, ValueError):
        # Classes typed into an interpreter have no source.
        return _without_source(source) if isinstance(source, type) else PartHelp("", ())


def _without_source(kind: Any) -> PartHelp:
    allowed = ranges(kind)
    fields = tuple(
        FieldHelp(
            field.name, str(field.type), repr(field.default), "", str(allowed.get(field.name, ""))
        )
        for field in dataclasses.fields(kind)
        if field.init
    )
    return PartHelp((kind.__doc__ or "").split("\n")[0], fields)


@cache
def _tree(module: str) -> ast.Module:
    loaded = getattr(sys.modules.get(module), "__file__", None)
    if loaded is None:
        spec = importlib.util.find_spec(module)
        loaded = spec.origin if spec is not None else None
    if loaded is None:
        raise KeyError(module)
    return ast.parse(Path(loaded).read_text(encoding="utf-8"))


@cache
def _described(module: str, name: str) -> PartHelp:
    body: list[ast.stmt] = _tree(module).body
    *outer, last = name.split(".")
    for part in outer:
        found: Any = next((n for n in body if getattr(n, "name", None) == part), None)
        if found is None:
            raise KeyError(name)
        body = found.body
    node = next((n for n in body if isinstance(n, ast.ClassDef) and n.name == last), None)
    if node is None:
        raise KeyError(name)
    fields: dict[str, FieldHelp] = {}
    for base in node.bases:
        home = _home(module, ast.unparse(base))
        if home is not None:
            fields |= {field.name: field for field in _described(*home).fields}
    for statement, following in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            field = _field(module, statement, following, fields.get(statement.target.id))
            if not field.type.startswith("ClassVar"):
                fields[field.name] = field
    summary = (ast.get_docstring(node) or "").split("\n")[0]
    return PartHelp(summary, tuple(fields.values()))


def _field(
    module: str, statement: ast.AnnAssign, following: ast.stmt | None, inherited: FieldHelp | None
) -> FieldHelp:
    text = inherited.text if inherited else ""
    if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
        text = " ".join(str(following.value.value).split())
    default = ast.unparse(statement.value) if statement.value is not None else ""
    assert isinstance(statement.target, ast.Name)
    kind, allowed = _type(module, statement.annotation)
    return FieldHelp(statement.target.id, kind, default, text, allowed)


def _type(module: str, annotation: ast.expr) -> tuple[str, str]:
    """The annotation as text, and its range; a `Literal` as its alternatives.

    Annotations may stand behind a name.
    """
    node = annotation
    if isinstance(node, ast.Name):
        node = _assigned(module, node.id) or node
    if isinstance(node, ast.Subscript):
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        owner = ast.unparse(node.value).rpartition(".")[-1]
        if owner == "Literal":
            values = (item.value for item in items if isinstance(item, ast.Constant))
            return "|".join(map(str, values)), ""
        if owner == "Annotated":
            kind, _ = _type(module, items[0])
            found = [_range(item, kind.startswith("tuple")) for item in items[1:]]
            return kind, ", ".join(filter(None, found))
    return ast.unparse(annotation), ""


def _range(node: ast.expr, many: bool) -> str:
    """What a call `Range(...)` of numbers allows; "" for anything else."""
    if not (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Range")):
        return ""
    bounds = {each.arg or "": ast.literal_eval(each.value) for each in node.keywords}
    return Range(**bounds).of(many)


def _assigned(module: str, name: str) -> ast.expr | None:
    """The value assigned to a name at the top of a module, or of the module it comes from."""
    for node in _tree(module).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            assert isinstance(node, ast.Assign)
            return node.value
    home = _imported(module, name)
    return None if home is None else _assigned(*home)


def _home(module: str, name: str) -> tuple[str, str] | None:
    """Module and name of a base class of ours; None for those that have no fields."""
    for node in _tree(module).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return module, name
    return _imported(module, name)


def _imported(module: str, name: str) -> tuple[str, str] | None:
    for node in _tree(module).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("umdqn"):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return node.module, alias.name
    return None
