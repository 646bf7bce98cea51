"""The commands that read one run: `evaluate`, `accuracy`, `laws`, `calibrate`, `watch`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from umdqn.cli.options import Command, add_number, add_trust
from umdqn.cli.tables import print_calibration, print_report
from umdqn.errors import check
from umdqn.parts.ranges import Range


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="RUN", type=Path, help="run directory")
    parser.add_argument(
        "--checkpoint", default="last", help="last, best or a step that is kept (default last)"
    )
    add_trust(parser)


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object only")


def _add_evaluate(parser: argparse.ArgumentParser, tokens: Sequence[str]) -> None:
    _add_run(parser)
    _add_json(parser)
    add_number(parser, "episodes", "Episodes per seed.", Range(least=1), 100)


def _add_accuracy(parser: argparse.ArgumentParser, tokens: Sequence[str]) -> None:
    _add_run(parser)
    _add_json(parser)


def _add_laws(parser: argparse.ArgumentParser, tokens: Sequence[str]) -> None:
    _add_run(parser)
    parser.add_argument("--state", required=True, help="state, such as 2,6")
    parser.add_argument("--out", required=True, type=Path, help="picture to write")


def _add_calibrate(parser: argparse.ArgumentParser, tokens: Sequence[str]) -> None:
    _add_run(parser)
    _add_json(parser)
    add_number(parser, "episodes", "Episodes per seed.", Range(least=2), 1000)
    parser.add_argument("--out", type=Path, help="picture to write")
    parser.add_argument(
        "--save", action="store_true", help="keep the verdict in the run's directory"
    )


def _add_watch(parser: argparse.ArgumentParser, tokens: Sequence[str]) -> None:
    _add_run(parser)
    parser.add_argument(
        "--out", required=True, type=Path, help="animation to write (.gif or .webp)"
    )
    add_number(parser, "seed", "Seed whose policy plays.", Range(least=0), "the first")
    add_number(parser, "steps", "Most steps of the episode.", Range(least=1), 1000)


def _loaded(options: argparse.Namespace) -> Any:
    """Load the run that a command is about, at the checkpoint that it names."""
    named = options.checkpoint
    known = named in ("last", "best") or named.isdecimal()
    check(known, "checkpoint", named, "last, best or a step")
    from umdqn.loops.machine import keep_compiled_programs
    from umdqn.runs.run import load

    keep_compiled_programs()
    checkpoint = int(named) if named.isdecimal() else named
    return load(options.directory, checkpoint, options.trust)


def evaluate(options: argparse.Namespace) -> None:
    """Play episodes."""
    from umdqn.analysis.reports import evaluation_report

    print_report(evaluation_report(_loaded(options), options.episodes), options.json)


def accuracy(options: argparse.Namespace) -> None:
    """Compare laws with the exact ones."""
    from umdqn.analysis.reports import accuracy_report

    print_report(accuracy_report(_loaded(options)), options.json)


def laws(options: argparse.Namespace) -> None:
    """Draw laws."""
    from umdqn.figures.laws import draw_laws

    draw_laws(_loaded(options), options.state, options.out)
    print(options.out)


def watch(options: argparse.Namespace) -> None:
    """Write an episode as an animation."""
    from umdqn.figures.watching import watch as play

    steps = play(_loaded(options), options.out, options.seed, options.steps)
    print(f"{options.out} ({steps} steps)")


def calibrate(options: argparse.Namespace) -> None:
    """Compare laws with realised returns."""
    from umdqn.figures.calibration import draw_calibration

    run = _loaded(options)
    report = run.calibration(options.episodes)
    if options.out:
        title = f"{run.config.label} on {run.config.env}, {run.age}"
        draw_calibration(report, title, options.out)
    saved = [run.save_trust()] if options.save else []
    if options.json:
        print(json.dumps(report))
        return
    print_calibration(report)
    for path in [*saved, *([options.out] if options.out else [])]:
        print(path)
    print(f"verdict: {report['verdict']}")


COMMANDS = (
    Command("evaluate", "Play episodes with the agents of a run.", evaluate, _add_evaluate),
    Command("accuracy", "Distance of learned laws to the exact ones.", accuracy, _add_accuracy),
    Command("laws", "Draw the laws of all actions in a state.", laws, _add_laws),
    Command(
        "calibrate", "Whether realised returns fall where laws say.", calibrate, _add_calibrate
    ),
    Command("watch", "Write an episode with the laws of all actions beside it.", watch, _add_watch),
)
"""Commands that read one run."""
