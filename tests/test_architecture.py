"""Imports flow one way, files and functions stay small, nothing read from disk is executed."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "umdqn"
FLOW = (
    "text",
    "errors",
    "extras",
    "folders",
    "specs",
    "layouts",
    "parts",
    "numerics",
    "networks",
    "laws",
    "supports",
    "representations",
    "metrics",
    "decisions",
    "replay",
    "exploration",
    "targets",
    "optimisers",
    "agents",
    "loops",
    "calibration",
    "runs",
    "sweeps",
    "analysis",
    "export",
    "figures",
    "studies",
    "viewer",
    "cli",
)
SIDE = {"envs": {"text", "errors", "extras", "specs", "layouts", "parts"}}
TOP = {"__init__", "__main__"}
FILES = sorted(ROOT.rglob("*.py"))


def part(path: Path) -> str:
    relative = path.relative_to(ROOT)
    return relative.parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module == "umdqn":
            names += [f"umdqn.{a.name}" for a in node.names if not a.name.startswith("_")]
        modules |= {name.split(".")[1] for name in names if name.startswith("umdqn.")}
    return modules


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_flow_one_way(path):
    own = part(path)
    if own in TOP:
        return
    before = SIDE[own] if own in SIDE else set(FLOW[: FLOW.index(own)])
    if own in FLOW[FLOW.index("loops") :]:
        before |= {"envs"}
    assert imported(path) - {own} <= before


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_stay_under_300_lines_and_functions_under_40(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 300
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno + 1 <= 40, node.name


def test_packages_import_nothing_heavy_by_themselves():
    """An `__init__` holds a docstring and at most a table; only the public one re-exports."""
    for path in ROOT.rglob("*/__init__.py"):
        assert imported(path) <= {"parts"}, path


def test_nothing_read_from_disk_can_run():
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            roots = {name.split(".")[0] for name in names if name}
            assert not {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"} & roots
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec")
            assert not (isinstance(node, ast.keyword) and node.arg == "allow_pickle")
