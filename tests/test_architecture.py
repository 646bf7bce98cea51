"""Imports flow one way, and every file stays small."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "umdqn"
FLOW = (
    "types",
    "numerics",
    "networks",
    "laws",
    "metrics",
    "agents",
    "loops",
    "runs",
    "sweeps",
    "analysis",
)
SIDE = {"envs": {"types"}}
TOP = {"cli", "commands", "sweep_commands", "progress", "tables", "__init__"}
FILES = sorted(ROOT.rglob("*.py"))


def part(path: Path) -> str:
    relative = path.relative_to(ROOT)
    return relative.parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules |= {name.split(".")[1] for name in names if name.startswith("umdqn.")}
    return modules


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_flow_one_way(path):
    own = part(path)
    if own in TOP:
        return
    before = SIDE[own] if own in SIDE else set(FLOW[: FLOW.index(own)])
    if own in FLOW[FLOW.index("agents") :]:
        before |= {"envs"}
    assert imported(path) - {own} <= before


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_stay_under_300_lines(path):
    assert len(path.read_text().splitlines()) <= 300


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
