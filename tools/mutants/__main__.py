"""Mutation score of the core: `python tools/mutants`, or `make mutants`.

Every mutant (see mutate.py) runs the tests that execute the function it changes, cheapest first,
up to a budget of processor time, in a copy of the tree. Results are in `.mutants`.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import sys
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import children
import measure
import mutate

PACKAGES = (
    *("laws", "representations", "metrics", "decisions", "replay", "agents", "loops", "runs"),
)
SOURCE = children.ROOT / "src/umdqn"
# Presets are choices, as defaults are: no test could derive them.
SKIPPED = {"runs/presets.py"}
# All else kills: tests fail, cannot be imported, or are not there any more.
OUTCOMES = {children.PASSED: "survived", children.TIMEOUT: "timeout"}
RESULTS, SURVIVORS = children.STATE / "results.json", children.STATE / "survivors.diff"
_TRIED = "tried.txt"
# Processor time: of a test process without tests and of a test file that was not measured, and how
# much slower a mutant may be.
_START, _FILE, _SLOWER = 30.0, 60.0, 4.0


def main() -> None:
    """Sample mutants, try them, and print the score."""
    options = _options()
    children.STATE.mkdir(exist_ok=True)
    chosen = [m for package in options.packages for m in _sample(package, options.sample)]
    if options.list:
        for mutant in chosen:
            print(mutant.name, mutant.owner, mutant.diff(_source(mutant)), sep="\n")
        return
    if options.only:
        chosen = [m for m in chosen if m.name in options.only]
    kept = RESULTS.exists() and (options.again or options.only)
    results = json.loads(RESULTS.read_text()) if kept else {}
    done = {"killed", "timeout"} | ({"survived"} if options.again == "new" else set())
    todo = [m for m in chosen if options.only or results.get(m.name) not in done]
    tests = {} if options.tests else measure.measure()
    _try_all(todo, tests, options, results)
    sys.exit(_report(chosen, results, options.least))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--packages", nargs="+", default=PACKAGES, choices=PACKAGES)
    parser.add_argument("--sample", type=int, default=20, help="mutants per package; 0: all")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at once")
    parser.add_argument("--budget", type=float, default=40.0, help="seconds of tests per mutant")
    parser.add_argument("--least", type=float, default=85.0, help="score to reach, in percent")
    parser.add_argument("--again", choices=("new", "survivors"), help="keep earlier results")
    parser.add_argument("--only", nargs="+", help="names of mutants to try")
    parser.add_argument("--tests", nargs="+", help="test files to run instead of the measured ones")
    parser.add_argument("--list", action="store_true", help="show the sample, try nothing")
    return parser.parse_args()


def _source(mutant: mutate.Mutant) -> bytes:
    return (SOURCE / mutant.module).read_bytes()


def _sample(package: str, count: int) -> list[mutate.Mutant]:
    """The first mutants of a package in the order of their names, which is as good as random."""
    found = []
    for path in sorted((SOURCE / package).glob("*.py")):
        module = f"{package}/{path.name}"
        if module not in SKIPPED:
            found += mutate.mutants(module, path.read_bytes())
    return sorted(found, key=lambda mutant: mutant.name)[: count or None]


def relevant(mutant: mutate.Mutant, tests: dict[str, Any], budget: float) -> list[str]:
    """Return the tests that run what is changed, then their neighbours, cheapest first.

    Neighbours, since a program that one test traces is reused by later tests of its file.
    """
    exact = f"{mutant.module}:{mutant.owner}"
    package = f"{mutant.module.partition('/')[0]}/"
    for prefix in (exact, f"{mutant.module}:", package):
        # A function with what is defined in it; else all of the class, the module or the package.
        ends = (prefix, f"{prefix}.") if prefix == exact and mutant.owner else (prefix,)
        hit = [
            name
            for name, test in tests.items()
            if any(h == ends[0] or h.startswith(ends[-1]) for h in test["hits"])
        ]
        if hit:
            break
    hit = hit or list(tests)
    files = {name.partition("::")[0] for name in hit}
    beside = {name for name in tests if name.partition("::")[0] in files} - set(hit)
    chosen: list[str] = []
    seconds = 0.0
    for group in (hit, beside):
        for name in sorted(group, key=lambda name: (tests[name]["seconds"], name)):
            seconds += tests[name]["seconds"]
            if chosen and seconds > budget:
                break
            chosen.append(name)
    return chosen


def _try_all(
    todo: list[mutate.Mutant], tests: dict[str, Any], options: Any, results: dict[str, str]
) -> None:
    """Share mutants among workers, and collect what became of each."""
    workers = []
    for job in range(options.jobs):
        copy = children.tree(f"job{job}")
        (copy / _TRIED).touch()
        share = todo[job :: options.jobs]
        work = partial(_try_some, copy, share, tests, options)
        workers.append((children.worker(copy, work), copy))
    try:
        failed = [os.waitpid(pid, 0)[1] for pid, _ in workers]
    finally:
        # Also of those tried before an interruption, for `--again new`.
        for _, copy in workers:
            results |= dict(line.split("\t") for line in (copy / _TRIED).read_text().splitlines())
        RESULTS.write_text(json.dumps(results))
    if any(failed):
        raise SystemExit("a worker failed")


def _try_some(copy: Path, todo: list[mutate.Mutant], tests: dict[str, Any], options: Any) -> None:
    alone: dict[str, bool] = {}
    with (copy / _TRIED).open("w") as tried:
        for count, mutant in enumerate(todo, 1):
            chosen = options.tests or relevant(mutant, tests, options.budget)
            seconds = sum(tests[name]["seconds"] if name in tests else _FILE for name in chosen)
            end = _try(copy, mutant, chosen, _START + _SLOWER * seconds)
            outcome = OUTCOMES.get(end.code, "killed")
            if outcome == "killed" and not _passes(copy, chosen, alone):
                outcome = "error: tests fail without the mutant"
            tried.write(f"{mutant.name}\t{outcome}\n")
            tried.flush()
            place = f"{mutant.module}:{mutant.line}"
            head = f"{count}/{len(todo)} {mutant.name}"
            print(f"{head} {outcome} {end.seconds:.1f} s {place} {mutant.kind}", flush=True)


def _passes(copy: Path, tests: list[str], alone: dict[str, bool]) -> bool:
    """Return whether the test that failed, if it got so far, passes by itself without a mutant."""
    lines = (copy / "output.txt").read_text().splitlines()
    failed = [line[7:].split(" - ")[0] for line in lines if line.startswith("FAILED ")][:1]
    command = failed or ["--collect-only", *tests]
    name = " ".join(command)
    if name not in alone:
        alone[name] = children.run(copy, command, _START + _FILE).code == children.PASSED
    return alone[name]


def _try(copy: Path, mutant: mutate.Mutant, tests: list[str], seconds: float) -> children.Ended:
    """Run tests on a mutant; tests that start processes find it on disk."""
    path, old = copy / "src/umdqn" / mutant.module, _source(mutant)
    new, name = mutant.apply(old), f"umdqn.{mutant.module.removesuffix('.py').replace('/', '.')}"
    inside = mutant.owner in dict(mutate.owners(ast.parse(old)))

    def prepare() -> None:
        if not (inside and children.swap(name, path, old, new)):
            children.import_again(copy)

    path.write_bytes(new)
    try:
        return children.run(copy, ["-x", *tests], seconds, prepare=prepare)
    finally:
        # With its time, by which Python's cache goes.
        shutil.copy2(SOURCE / mutant.module, path)


def _report(chosen: list[mutate.Mutant], results: dict[str, str], least: float) -> int:
    """Print the table, write the survivors, and return 0 if the score is high enough."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant in chosen:
        counts[mutant.module.partition("/")[0]][results.get(mutant.name, "not tried")] += 1
    print("| package | mutants | killed | timeout | survived | score |\n|---|---|---|---|---|---|")
    for package, count in [*counts.items(), ("all", sum(counts.values(), Counter()))]:
        caught = count["killed"] + count["timeout"]
        row = (package, count.total(), count["killed"], count["timeout"], count["survived"])
        print(f"| {' | '.join(map(str, row))} | {100 * caught / count.total():.0f}% |")
    survivors = [mutant for mutant in chosen if results.get(mutant.name) == "survived"]
    SURVIVORS.write_text("\n".join(f"{m.name} {m.owner}\n{m.diff(_source(m))}" for m in survivors))
    print(f"survivors: {SURVIVORS.relative_to(children.ROOT)}")
    strange = [name for name, outcome in results.items() if outcome.startswith("error")]
    return int(100 * caught / count.total() < least or bool(strange))


if __name__ == "__main__":
    main()
