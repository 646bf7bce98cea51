"""Which test runs which function, measured once per test file in an instrumented copy."""

from __future__ import annotations

import ast
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import children
import mutate
import pytest

# Test files about what lies outside of the mutated packages, or about texts.
_OTHERS = (
    *("viewer", "pictures", "docs", "package", "architecture", "contributing", "supply"),
    *("extras", "export", "reports", "study", "statistics", "torture", "completion", "numerics"),
    *("dynamic_programming", "truth_study", "energy_distance", "start_up", "test_text", "mutants"),
)
_MOST_SECONDS = 600.0
_HITS = "umdqn_hits"
# The recorder writes what processes that tests start have run.
_MODULE = """
import atexit, json, os
seen = set()
def hit(name):
    seen.add(name)
def save(into=os.environ.get("UMDQN_HITS")):
    if into:
        with open(f"{into}/{os.getpid()}.json", "w") as file:
            json.dump(sorted(seen), file)
if os.environ.get("UMDQN_HITS"):
    atexit.register(save)
"""


class Recorder:
    """Pytest plugin: processor time, outcome and functions of every test."""

    def __init__(self, out: Path, below: Path):
        self.out, self.below = out, below
        self.tests: dict[str, Any] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[Any]:
        import umdqn_hits

        os.environ["UMDQN_HITS"] = str(self.below)
        umdqn_hits.seen.clear()
        began = _processor_time()
        result = yield
        hits = set(umdqn_hits.seen)
        for path in self.below.iterdir():
            hits |= set(json.loads(path.read_text() or "[]"))
            path.unlink()
        record = self.tests.setdefault(item.nodeid, {"passed": False})
        record |= {"seconds": round(_processor_time() - began, 2), "hits": sorted(hits)}
        return result

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" and report.passed:
            self.tests.setdefault(report.nodeid, {})["passed"] = True

    def pytest_sessionfinish(self) -> None:
        self.out.write_text(json.dumps(self.tests))


def measure() -> dict[str, Any]:
    """Return seconds and functions by test; files that did not change are not run again."""
    kept = children.STATE / "measured"
    kept.mkdir(parents=True, exist_ok=True)
    outs = {}
    for path in sorted((children.ROOT / "tests").glob("test_*.py")):
        if not any(word in path.stem for word in _OTHERS):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
            outs[f"tests/{path.name}"] = kept / f"{path.stem}-{digest}.json"
    missing = {name: out for name, out in outs.items() if not out.exists()}
    if missing:
        copy = _instrumented()

        def work() -> None:
            for name, out in missing.items():
                _run(copy, name, out)

        if os.waitpid(children.worker(copy, work), 0)[1]:
            raise SystemExit("tests must pass before there are mutants")
    tests: dict[str, Any] = {}
    for out in outs.values():
        tests |= json.loads(out.read_text())
    return {name: test for name, test in tests.items() if test["passed"]}


def _run(copy: Path, name: str, out: Path) -> None:
    below = copy / "hits"
    below.mkdir(exist_ok=True)
    ended = children.run(copy, [name], _MOST_SECONDS, (Recorder(out, below),))
    print(f"measured {name}: {ended.seconds:.0f} s", flush=True)
    if ended.code != children.PASSED:
        # What fails without any mutant is not run on mutants.
        print((copy / "output.txt").read_text()[-3000:], flush=True)
    if not out.exists():
        raise SystemExit(f"{name} cannot be measured")


def _instrumented() -> Path:
    """A copy of the tree whose functions say that they are called."""
    copy = children.tree("measuring")
    package = copy / "src/umdqn"
    (copy / f"src/{_HITS}.py").write_text(_MODULE)
    for path in package.rglob("*.py"):
        tree = ast.parse(path.read_text())
        name = path.relative_to(package)
        for owner, function in mutate.owners(tree):
            call = ast.parse(f"__import__({_HITS!r}).hit({f'{name}:{owner}'!r})").body
            documented = ast.get_docstring(function) is not None
            function.body[documented:documented] = call
        path.write_text(ast.unparse(tree))
    return copy


def _processor_time() -> float:
    return sum(os.times()[:4])
