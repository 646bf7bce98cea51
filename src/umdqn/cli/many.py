"""The commands that train or compare many runs: `study`, `sweep`, `compare`, `reproduce`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from umdqn.cli.options import Command, add_fields, add_number, add_trust, given_fields
from umdqn.cli.tables import print_table
from umdqn.errors import UmdqnError, check, notice, unknown
from umdqn.extras import require
from umdqn.parts.ranges import Range


def _add_study(parser: argparse.ArgumentParser, tokens: Sequence[str]) -> None:
    parser.add_argument(
        "name",
        choices=["laws", "truth"],
        metavar="NAME",
        help="laws (grid world) or truth (finite MDPs at a discount of 0.99)",
    )
    parser.add_argument("--out", required=True, type=Path, help="directory; what is there is kept")
    add_number(parser, "seeds", "Number of seeds.", Range(least=1), 5)
    add_number(parser, "steps", "Steps per seed.", Range(least=1), "those of the study")
    parser.add_argument("--only", nargs="+", metavar="SECTION", help="sections (default: all)")
    for axis in ("env", "agent"):
        parser.add_argument(
            f"--{axis}", nargs="+", default=[], metavar=axis.upper(), help="truth: only these"
        )
    _add_workers(parser)
    add_trust(parser)


def _add_sweep(parser: argparse.ArgumentParser, tokens: Sequence[str]) -> None:
    parser.usage = "%(prog)s [FILE] --out OUT [OPTION ...]"
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="TOML, or use options")
    parser.add_argument("--env", nargs="+", help="environments")
    parser.add_argument("--agent", nargs="+", help="agents")
    parser.add_argument("--preset", nargs="+", help="presets (default tuned)")
    parser.add_argument(
        "--vary",
        nargs="+",
        action="append",
        default=[],
        metavar=("FIELD", "VALUE"),
        help="one more axis: a field and its values",
    )
    add_number(parser, "seeds", "Seeds per combination.", Range(least=1), "1")
    whole = "1, or of a compiled environment as many as leave no core idle"
    add_number(parser, "seeds_per_run", "Seeds that one process trains.", Range(least=1), whole)
    parser.add_argument("--out", required=True, type=Path, help="directory; what is there is kept")
    _add_workers(parser)
    add_trust(parser)
    add_fields(parser, tokens, ("env", "agent", "preset", "seeds"))


def _add_compare(parser: argparse.ArgumentParser, tokens: Sequence[str]) -> None:
    parser.add_argument(
        "paths", nargs="+", type=Path, metavar="PATH", help="sweeps, runs, or results.csv of sweeps"
    )
    parser.add_argument("--out", required=True, type=Path, help="directory for the report")
    add_trust(parser)
    for axis in ("env", "agent"):
        parser.add_argument(
            f"--{axis}", nargs="+", default=[], metavar=axis.upper(), help="only these"
        )


def _add_reproduce(parser: argparse.ArgumentParser, tokens: Sequence[str]) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="laws, laws-baselines, curves, comparison"
    )
    parser.add_argument("--scale", default="smoke", help="smoke (default), short or paper")
    parser.add_argument("--env", nargs="+", default=[], help="some environments only")
    parser.add_argument("--out", required=True, type=Path, help="directory; nothing is redone")
    _add_workers(parser)
    add_trust(parser)


def _add_workers(parser: argparse.ArgumentParser) -> None:
    add_number(parser, "workers", "Processes at a time.", Range(least=1), "one per core")
    parser.add_argument("--ray", metavar="ADDRESS", help="run on a Ray cluster; local starts one")


def study(options: argparse.Namespace) -> None:
    """Do a study, or the part of it that is missing."""
    from umdqn.studies.laws.study import LawsStudy
    from umdqn.studies.truth.study import TruthStudy

    seeds, steps, only = options.seeds, options.steps, options.only or ()
    if options.name == "truth":
        study = TruthStudy(options.out, seeds, steps, only, options.env, options.agent)
        return _do(study, options)
    for axis in ("env", "agent"):
        check(not getattr(options, axis), axis, getattr(options, axis), "study laws takes none")
    return _do(LawsStudy(options.out, seeds, steps, only), options)


def reproduce(options: argparse.Namespace) -> None:
    """Make the paper's figures."""
    from umdqn.studies.paper.reproduction import Reproduction

    _do(Reproduction(options.out, options.scale, options.names, options.env), options)


def _do(study: Any, options: argparse.Namespace) -> None:
    """Train what a study lacks, write its report, and raise an error if jobs failed."""
    from umdqn.cli.display import SweepDisplay
    from umdqn.loops.machine import available_cores, keep_compiled_programs
    from umdqn.studies.study import outlook, run_study
    from umdqn.sweeps.driver import trust_sweep
    from umdqn.sweeps.work import failure

    if options.trust:
        trust_sweep(study.sweep)
    keep_compiled_programs()
    pool = _pool(options)
    cores = options.workers or available_cores()
    print(outlook(study, cores), file=sys.stderr)
    with SweepDisplay() as display:
        ended = run_study(study, pool, display.show, lambda line: print(line, file=sys.stderr))
    _print_notes(ended.outcomes)
    for path in ended.written:
        print(path)
    failed = failure(ended.outcomes)
    if failed is not None:
        raise failed


def sweep(options: argparse.Namespace) -> None:
    """Train many runs."""
    from umdqn.analysis.comparison import summary_table
    from umdqn.cli.display import SweepDisplay
    from umdqn.sweeps.driver import run_sweep, trust_sweep
    from umdqn.sweeps.results import collect, write_results
    from umdqn.sweeps.work import failure

    if options.trust:
        trust_sweep(options.out)
    pool, jobs = _pool(options), _jobs(options)
    with SweepDisplay() as display:
        outcomes = run_sweep(jobs, options.out, pool, display.show)
    _print_notes(outcomes)
    failed = failure(outcomes)
    try:
        written = write_results(options.out)
        records = collect(options.out)
        if records:
            print_table(*summary_table(records))
        for path in written:
            print(path)
    except UmdqnError as error:
        raise failed or error from None
    if failed is not None:
        raise failed


def _jobs(options: argparse.Namespace) -> list[Any]:
    """Return the jobs of a sweep; errors name the file that they are in."""
    try:
        return _sweep_of(options).jobs()
    except UmdqnError as error:
        if options.file is None or str(options.file) in str(error):
            raise
        raise UmdqnError(f"{options.file}: {error}") from error


def _sweep_of(options: argparse.Namespace) -> Any:
    """Return the sweep that a file or the options describe."""
    from umdqn.sweeps.plan import read_sweep, sweep_of

    given = {
        name: getattr(options, name)
        for name in ("env", "agent", "preset", "seeds", "seeds_per_run")
        if getattr(options, name) is not None
    }
    shared = given_fields(options)
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
    from umdqn.studies.sections import write_comparison
    from umdqn.sweeps.driver import trust_sweep
    from umdqn.sweeps.results import collect_all, unfinished

    for path in options.paths if options.trust else ():
        trust_sweep(path)
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
    """Return the records with some names on an axis; all of them if no name is given."""
    found = list(dict.fromkeys(record[axis] for record in records))
    for name in names:
        if name not in found:
            raise unknown(f"{axis} of what is compared", name, found)
    return [record for record in records if record[axis] in (names or found)]


def _print_notes(outcomes: Mapping[str, Any]) -> None:
    """Print the notices of all runs, equal ones once."""
    for note, count in Counter(note for end in outcomes.values() for note in end.notes).items():
        notice(note if count == 1 else f"{note} ({count} runs)")


def _pool(options: argparse.Namespace) -> Callable[[Path], Any]:
    from umdqn.sweeps.pools import LocalPool, RayPool

    workers = options.workers
    if options.ray is not None:
        check(workers is None, "workers", workers, "the Ray cluster knows how many it has (--ray)")
        require("--ray", "ray", ["ray"])
        return lambda root: RayPool(root, options.ray)
    return lambda root: LocalPool(root, workers)


COMMANDS = (
    Command("study", "Train and compare many agents: how true are their laws?", study, _add_study),
    Command("sweep", "Train many runs: environments x agents x fields x seeds.", sweep, _add_sweep),
    Command(
        "compare",
        "Curves and statistics of the algorithms of sweeps and runs.",
        compare,
        _add_compare,
    ),
    Command("reproduce", "Make the figures and tables of the paper.", reproduce, _add_reproduce),
)
"""Commands that train or compare many runs."""
