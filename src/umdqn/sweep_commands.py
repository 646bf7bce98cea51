"""The commands that train many runs: reads, calls, prints. Imports wait until they are needed."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from umdqn.tables import print_table
from umdqn.types import UmdqnError, check, check_count, notice, unknown


def sweep(options: argparse.Namespace) -> None:
    """Train many runs."""
    from umdqn.analysis import summary_table
    from umdqn.sweeps import collect, write_results

    with _complaints(_run(_jobs(options), options.out, options)):
        written = write_results(options.out)
        records = collect(options.out)
        if records:
            print_table(*summary_table(records))
        for path in written:
            print(path)


def _jobs(options: argparse.Namespace) -> list[Any]:
    """What is to be trained; a mistake is told with the file that it is in."""
    try:
        return _sweep_of(options).jobs()
    except UmdqnError as error:
        if options.file is None or str(options.file) in str(error):
            raise
        raise UmdqnError(f"{options.file}: {error}") from error


def _sweep_of(options: argparse.Namespace) -> Any:
    """The sweep of a file, or of options."""
    from umdqn.commands import fields
    from umdqn.sweeps import read_sweep, sweep_of

    given = {
        name: getattr(options, name)
        for name in ("env", "agent", "preset", "seeds", "seeds_per_run")
        if getattr(options, name) is not None
    }
    shared = fields(options)
    axes = {name: values for name, *values in options.vary}
    check(len(axes) == len(options.vary), "vary", options.vary, "each field once")
    if options.file is None:
        return sweep_of({**given, "axes": axes, "fields": shared})
    also = [*given, *shared, *axes]
    if also:
        raise UmdqnError(f"a sweep is described by a file or by options, not both: {also[0]!r}")
    return read_sweep(options.file)


def compare(options: argparse.Namespace) -> None:
    """Compare the algorithms of sweeps and runs."""
    from umdqn.analysis import write_comparison
    from umdqn.sweeps import collect_all, unfinished

    records = collect_all(options.paths)
    if not records:
        raise UmdqnError(f"{options.paths[0]} holds no evaluations of finished runs")
    for axis in ("env", "agent"):
        records = _only(records, axis, getattr(options, axis))
    missing = list(filter(None, map(unfinished, options.paths)))
    for remark in missing:
        notice(remark)
    for path in write_comparison(records, options.out, missing):
        print(path)


def _only(records: list[dict[str, Any]], axis: str, names: list[str]) -> list[dict[str, Any]]:
    """The records with some names on an axis; all where none are named."""
    found = list(dict.fromkeys(record[axis] for record in records))
    for name in names:
        if name not in found:
            raise unknown(f"{axis} of what is compared", name, found)
    return [record for record in records if record[axis] in (names or found)]


def reproduce(options: argparse.Namespace) -> None:
    """Make the paper's figures."""
    from umdqn.analysis import Reproduction, hours
    from umdqn.loops import available_cores

    made = Reproduction(options.out, options.scale, options.names, options.env)
    made.claim()
    jobs, left = made.jobs, made.left()
    cores = available_cores() if options.workers is None else _workers(options)
    print(
        f"{len(left)} of {len(jobs)} trainings are left, about {_span(hours(left, cores))} on "
        f"{cores} cores, evaluations not counted, if they are as fast as the one whose rates are "
        "known (umdqn/analysis/rates.json)",
        file=sys.stderr,
    )
    with _complaints(_run(jobs, made.sweep, options)):
        for path in made.write():
            print(path)


def _span(hours: float) -> str:
    """A length of time in words."""
    return f"{hours:.1f} hours" if hours >= 1 else f"{max(hours * 60, 1):.0f} min"


def _run(jobs: list[Any], root: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Do the jobs where the options say; how each ended."""
    from umdqn.progress import SweepDisplay
    from umdqn.sweeps import run_sweep

    with SweepDisplay() as display:
        outcomes = run_sweep(jobs, root, _pool(options), display.show)
    for note, count in Counter(note for end in outcomes.values() for note in end.notes).items():
        notice(note if count == 1 else f"{note} ({count} runs)")
    return outcomes


def _workers(options: argparse.Namespace) -> int:
    from umdqn.runs.fields import read_number

    workers: int = read_number("workers", int, options.workers)
    check_count("workers", workers)
    return workers


def _pool(options: argparse.Namespace) -> Callable[[Path], Any]:
    from umdqn.sweeps import LocalPool, RayPool

    workers = None if options.workers is None else _workers(options)
    if options.ray is not None:
        both = workers is None
        check(both, "workers", workers, "the Ray cluster knows how many it has (--ray)")
        return lambda root: RayPool(root, options.ray)
    return lambda root: LocalPool(root, workers)


@contextmanager
def _complaints(outcomes: dict[str, Any]) -> Iterator[None]:
    """Report what there is; then, whatever happens, say what failed."""
    complaint = None
    failures = {name: end.reason for name, end in outcomes.items() if end.status != "finished"}
    if failures:
        listed = "; ".join(f"{name} ({reason})" for name, reason in failures.items())
        complaint = UmdqnError(f"{len(failures)} of {len(outcomes)} runs failed: {listed}")
    try:
        yield
    except UmdqnError as error:
        raise complaint or error from None
    if complaint:
        raise complaint
