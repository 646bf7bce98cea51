"""Mutants of a module: small changes of its code that tests should notice.

Changed are comparisons, arithmetic, numbers and flags, conditions, `and`/`or`, pairs of functions
such as `minimum`/`maximum`, `stop_gradient` and copies (removed), statements (dropped) and returned
values. Left alone are texts, annotations, decorators, messages of errors and notices, assertions,
numbers that only pick randomness, and the defaults of fields and the named numbers of modules,
which are choices and not behaviour.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import difflib
import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_PAIRS = ("min max", "minimum maximum", "floor ceil", "any all", "zeros ones", "argmin argmax")
_OTHER = {a: b for pair in _PAIRS for a, b in (pair.split(), pair.split()[::-1])}
# Calls that only protect their argument; those in the second set are methods of it.
_GUARDS, _METHODS = {"stop_gradient", "deepcopy", "array"}, {"copy"}
# Calls whose first argument only is code; the rest is a message.
_CHECKS = {"check", "require"}
_MESSAGES = {"notice", "unknown", "UmdqnError", "check_count", "warn", "print", "echo"}
# Calls whose numbers only pick randomness.
_RANDOM = {"key", "split", "fold_in", "default_rng"}
_ONE_SIDED = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    module: str
    """Path below the package, such as `laws/atoms.py`."""
    owner: str
    """The function or class that is changed, such as `Atoms.mean`; empty at module level."""
    kind: str
    line: int
    place: slice
    """Where the change is, in bytes."""
    text: str
    name: str = ""
    """Tells the mutant apart from others as long as its owner's code stays as it is."""

    def apply(self, source: bytes) -> bytes:
        """Return the changed module."""
        return source[: self.place.start] + self.text.encode() + source[self.place.stop :]

    def diff(self, source: bytes) -> str:
        """Return the change as a patch."""
        before, after = source.decode(), self.apply(source).decode()
        lines = (text.splitlines(keepends=True) for text in (before, after))
        path = f"src/umdqn/{self.module}"
        return "".join(difflib.unified_diff(*lines, path, path, n=2))


def mutants(module: str, source: bytes) -> list[Mutant]:
    """Return all mutants of a module, in an order that only depends on each of them."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found, twins = [], Counter[str]()
    for owner, kind, node, new in _changes(ast.parse(source), ""):
        begin = starts[node.lineno - 1] + node.col_offset
        place = slice(begin, starts[node.end_lineno - 1] + node.end_col_offset)
        text = ast.unparse(new)
        text = f"({text})" if isinstance(new, ast.expr) and not _atomic(new) else text
        known = f"{module}:{owner}:{kind}:{source[place].decode()}:{text}"
        twins[known] += 1
        name = hashlib.sha256(f"{known}:{twins[known]}".encode()).hexdigest()[:12]
        found.append(Mutant(module, owner, kind, node.lineno, place, text, name))
    return sorted(found, key=lambda mutant: mutant.name)


def owners(tree: ast.AST, owner: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the functions of a module with their dotted names."""
    for child in ast.iter_child_nodes(tree):
        below = owner
        if isinstance(child, (*_FUNCTIONS, ast.ClassDef)):
            below = f"{owner}.{child.name}".lstrip(".")
        if isinstance(child, _FUNCTIONS):
            yield below, child
        yield from owners(child, below)


def _atomic(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.Constant | ast.Call | ast.Attribute | ast.Subscript)


def _changes(node: Any, owner: str, returns: str = "") -> Iterator[tuple[str, str, Any, Any]]:
    """Yield owner, kind, old and new node of every change below a node."""
    outer = owner
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        owner = f"{owner}.{node.name}".lstrip(".")
        returns = ast.unparse(node.returns) if getattr(node, "returns", None) else ""
    if isinstance(node, ast.stmt):
        yield from ((owner, kind, node, new) for kind, new in _of_statement(node, returns))
    elif isinstance(node, ast.expr):
        yield from ((owner, kind, node, new) for kind, new in _of_expression(node))
    for test in _tests(node):
        if not isinstance(test, ast.UnaryOp) and not _one_sided(test):
            yield owner, "negate", test, ast.UnaryOp(ast.Not(), test)
    for child in _children(node):
        yield from _changes(child, owner, returns)
    if isinstance(node, _FUNCTIONS):
        # Evaluated where the function is defined.
        for child in filter(None, (*node.args.defaults, *node.args.kw_defaults)):
            yield from _changes(child, outer)


def _children(node: Any) -> list[Any]:
    """The parts of a node that are code."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return list(node.body)
        case ast.ClassDef():
            return [each for each in node.body if not isinstance(each, ast.AnnAssign)]
        case ast.AnnAssign():
            return [node.value] if node.value else []
        case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return []
        case ast.Call() if _called(node) in _CHECKS:
            return node.args[:1]
        case ast.Call() if _called(node) in _MESSAGES:
            return []
        case ast.Call() if _called(node) in _RANDOM:
            return [each for each in node.args if not isinstance(each, ast.Constant)]
        case ast.Call() if _called(node) == "isinstance":
            return node.args[:1]
        case ast.keyword(arg="strict"):
            return []
        case ast.Module():
            return [each for each in node.body if not _is_setting(each)]
        case ast.Lambda():
            return [node.body]
    return list(ast.iter_child_nodes(node))


def _is_setting(node: ast.stmt) -> bool:
    """Whether a statement names a number, or one made of numbers."""
    if not isinstance(node, ast.Assign):
        return False
    made = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Tuple, ast.Load)
    return all(isinstance(each, made) for each in ast.walk(node.value))


def _tests(node: Any) -> list[Any]:
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        return [] if ast.unparse(node.test) == "TYPE_CHECKING" else [node.test]
    return node.ifs if isinstance(node, ast.comprehension) else []


def _one_sided(test: ast.expr) -> bool:
    """Whether swapping its only comparison negates a test."""
    single = isinstance(test, ast.Compare) and len(test.ops) == 1
    return single and isinstance(test.ops[0], _ONE_SIDED)


def _called(node: ast.expr) -> str:
    function = node.func if isinstance(node, ast.Call) else node
    return getattr(function, "attr", getattr(function, "id", ""))


def _of_statement(node: ast.stmt, returns: str) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Expr(value=ast.Call()) if _called(node.value) not in _MESSAGES:
            yield "drop", ast.Pass()
        case ast.AugAssign() | ast.Raise() | ast.Delete():
            yield "drop", ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "drop", ast.Pass()
        case ast.Return(value=ast.expr() as value) if returns == "bool":
            yield "return", ast.Return(ast.UnaryOp(ast.Not(), value))
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield "return", ast.Return(ast.Constant(None))
    if isinstance(node, ast.AugAssign) and type(node.op) in _SWAPS:
        yield "arithmetic", _with(node, op=_SWAPS[type(node.op)]())


def _of_expression(node: ast.expr) -> Iterator[tuple[str, ast.AST]]:
    match node:
        case ast.Compare():
            for index, operator in enumerate(node.ops):
                swapped = [*node.ops[:index], _SWAPS[type(operator)](), *node.ops[index + 1 :]]
                yield "comparison", _with(node, ops=swapped)
        case ast.BinOp() if type(node.op) in _SWAPS and not _of_text(node):
            yield "arithmetic", _with(node, op=_SWAPS[type(node.op)]())
        case ast.BoolOp():
            yield "boolean", _with(node, op=_SWAPS[type(node.op)]())
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield "sign", node.operand
        case ast.Constant(value=bool(value)):
            yield "constant", ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield "constant", ast.Constant(value + 1)
        case ast.Constant(value=float(value)):
            yield "constant", ast.Constant(2 * value if value else 1.0)
        case ast.Call(args=[argument, *_]) if _called(node) in _GUARDS:
            yield "unguard", argument
        case ast.Call(func=ast.Attribute(value=argument), args=[]) if _called(node) in _METHODS:
            yield "unguard", argument
        case ast.Call() if _called(node) in _OTHER:
            named = "attr" if isinstance(node.func, ast.Attribute) else "id"
            yield "function", _with(node, func=_with(node.func, **{named: _OTHER[_called(node)]}))


def _of_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(isinstance(s, ast.JoinedStr) or isinstance(getattr(s, "value", None), str)
               for s in sides)  # fmt: skip


def _with(node: Any, **fields: Any) -> Any:
    """A copy of a node with other fields."""
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new
