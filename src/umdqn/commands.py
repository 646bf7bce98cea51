"""What each command does: reads, calls, prints. Imports wait until they are needed."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from umdqn.tables import print_calibration, print_report, print_table
from umdqn.types import UmdqnError, check

if TYPE_CHECKING:
    from umdqn.runs import Run


def train(options: argparse.Namespace) -> None:
    """Train an agent."""
    from umdqn.progress import TrainingDisplay
    from umdqn.runs import configure, loggers, train_config

    overrides = fields(options)
    if options.resume is not None:
        return _resume(options, overrides)
    config = configure(
        options.env or "grid-world",
        options.agent or "umdqn-c",
        options.preset or "paper",
        overrides,
    )
    with TrainingDisplay(config) as display:
        run = train_config(config, options.out, [display, *loggers(options.log)])
    print(run.path)


def fields(options: argparse.Namespace) -> dict[str, Any]:
    """The fields of the configuration that were given."""
    prefix = "field:"
    return {
        name.removeprefix(prefix): value
        for name, value in vars(options).items()
        if name.startswith(prefix)
    }


def _resume(options: argparse.Namespace, overrides: dict[str, Any]) -> None:
    from umdqn.progress import TrainingDisplay
    from umdqn.runs import RunDirectory, loggers
    from umdqn.runs import resume as go_on
    from umdqn.runs.fields import override

    steps = overrides.pop("steps", None)
    given = [name for name in ("env", "agent", "preset", "out") if getattr(options, name)]
    changed = [*given, *overrides]
    if changed:
        raise UmdqnError(
            f"--resume goes on with a run as it is: only --steps may change, not {changed[0]!r}"
        )
    config, *_ = RunDirectory(options.resume).read_manifest()
    config = config if steps is None else override(config, {"steps": steps})
    with TrainingDisplay(config) as display:
        run = go_on(options.resume, config.steps, [display, *loggers(options.log)])
    print(run.path)


def _loaded(options: argparse.Namespace) -> Run:
    """The run that a command is about, at the checkpoint that it names."""
    from umdqn.runs import load

    named = options.checkpoint
    known = named in ("last", "best") or named.isdecimal()
    check(known, "checkpoint", named, "last, best or a step")
    return load(options.directory, int(named) if named.isdecimal() else named)


def evaluate(options: argparse.Namespace) -> None:
    """Play episodes."""
    from umdqn.analysis import evaluation_report
    from umdqn.runs.fields import read_number

    episodes = read_number("episodes", int, options.episodes)
    print_report(evaluation_report(_loaded(options), episodes), options.json)


def accuracy(options: argparse.Namespace) -> None:
    """Compare laws with the exact ones."""
    from umdqn.analysis import accuracy_report

    print_report(accuracy_report(_loaded(options)), options.json)


def laws(options: argparse.Namespace) -> None:
    """Draw laws."""
    from umdqn.analysis import draw_laws

    draw_laws(_loaded(options), options.state, options.out)
    print(options.out)


def watch(options: argparse.Namespace) -> None:
    """Write an episode as an animation."""
    from umdqn.analysis import watch as play
    from umdqn.runs.fields import read_number

    seed = None if options.seed is None else read_number("seed", int, options.seed)
    steps = play(_loaded(options), options.out, seed, read_number("steps", int, options.steps))
    print(f"{options.out} ({steps} steps)")


def calibrate(options: argparse.Namespace) -> None:
    """Compare laws with realised returns."""
    from umdqn.analysis import calibration_report, draw_calibration
    from umdqn.runs.fields import read_number

    run = _loaded(options)
    report = calibration_report(run, read_number("episodes", int, options.episodes))
    if options.out:
        title = f"{run.config.label} on {run.config.env}, {run.age}"
        draw_calibration(report, title, options.out)
    if report["cut_weight"] > 0.01:
        print(
            f"note: what the time limit cuts off returns weighs {report['cut_weight']:.0%}; laws "
            "without a limit will look shifted",
            file=sys.stderr,
        )
    if options.json:
        print(json.dumps(report))
        return
    print_calibration(report)
    if options.out:
        print(options.out)


def study(options: argparse.Namespace) -> None:
    """Do a study, or what is missing of it."""
    from umdqn.analysis import SECTIONS, LawsStudy, write_report
    from umdqn.progress import TrainingDisplay
    from umdqn.runs import Interrupted
    from umdqn.runs.fields import read_number
    from umdqn.types import check_count

    seeds = read_number("seeds", int, options.seeds)
    check_count("seeds", seeds)
    steps = None if options.steps is None else read_number("steps", int, options.steps)
    check_count("steps", 1 if steps is None else steps)
    study = LawsStudy(options.out, seeds, steps)
    todo = study.todo(options.only or list(SECTIONS))
    print(f"{len(todo)} cases to do in {options.out}", file=sys.stderr)
    failed = []
    for number, (key, config) in enumerate(todo.items(), start=1):
        print(f"[{number}/{len(todo)}] {key}", file=sys.stderr)
        try:
            with TrainingDisplay(config) as display:
                study.do(key, config, [display])
        except Interrupted:
            raise
        except UmdqnError as error:
            failed.append(f"{key} ({error})")
            print(f"{key} failed: {error}", file=sys.stderr)
        write_report(study)
    for path in write_report(study):
        print(path)
    if failed:
        raise UmdqnError(f"{len(failed)} of {len(todo)} cases failed: {'; '.join(failed)}")


def agents(options: argparse.Namespace) -> None:
    """List the agents."""
    from umdqn.agents import ALGORITHMS
    from umdqn.runs.fields import name_of

    rows = [
        (
            name,
            name_of("representation", algorithm.representation),
            name_of("metric", algorithm.metric),
            algorithm.summary,
        )
        for name, algorithm in ALGORITHMS.items()
    ]
    print_table(("agent", "representation", "metric", ""), rows)


def envs(options: argparse.Namespace) -> None:
    """List the environments."""
    from umdqn.envs import CATALOGUE

    rows = [
        (
            name,
            listing.family,
            f"[{listing.domain.low:g}, {listing.domain.high:g}]",
            "compiled" if listing.compiled else "host",
            f"umdqn[{listing.extra}]" if listing.extra else "",
        )
        for name, listing in CATALOGUE.items()
    ]
    print_table(("environment", "presets", "domain", "loop", "needs"), rows)
    print(
        "Also any ALE game (ALE/Breakout), any Gymnasium id, and module:attribute, with discrete "
        "actions and observations in a Box."
    )
