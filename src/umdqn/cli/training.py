"""The command `train`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from umdqn.cli.options import Command, add_fields, given_fields
from umdqn.errors import UmdqnError


def _add_train(parser: argparse.ArgumentParser, tokens: Sequence[str]) -> None:
    parser.usage = "%(prog)s [ENV] [AGENT] [OPTION ...]"
    parser.add_argument("env", nargs="?", metavar="ENV", help="environment (default grid-world)")
    parser.add_argument("agent", nargs="?", metavar="AGENT", help="algorithm (default umdqn-c)")
    parser.add_argument("--preset", help="table of hyperparameters: tuned (default) or paper")
    parser.add_argument("--out", type=Path, help="run directory (default: a new one under runs/)")
    parser.add_argument(
        "--resume", type=Path, metavar="RUN", help="resume a run; --steps extends it"
    )
    parser.add_argument(
        "--log", action="append", default=[], metavar="LOG", help="also log to tensorboard or wandb"
    )
    add_fields(parser, tokens, ("env", "agent", "preset"))


def train(options: argparse.Namespace) -> None:
    """Train an agent."""
    from umdqn.cli.display import TrainingDisplay
    from umdqn.runs.configure import configure
    from umdqn.runs.logs import loggers
    from umdqn.runs.start import train_config

    overrides = given_fields(options)
    if options.resume is not None:
        return _resume(options, overrides)
    config = configure(
        options.env or "grid-world",
        options.agent or "umdqn-c",
        options.preset or "tuned",
        overrides,
    )
    _choose_cores(config)
    with TrainingDisplay(config) as display:
        run = train_config(config, options.out, [display, *loggers(options.log)])
    print(run.path)


def _resume(options: argparse.Namespace, overrides: dict[str, Any]) -> None:
    from umdqn.cli.display import TrainingDisplay
    from umdqn.runs.directory import RunDirectory
    from umdqn.runs.fields import override
    from umdqn.runs.logs import loggers
    from umdqn.runs.start import resume

    steps = overrides.pop("steps", None)
    given = [name for name in ("env", "agent", "preset", "out") if getattr(options, name)]
    changed = [*given, *overrides]
    if changed:
        raise UmdqnError(
            f"--resume continues a run as it is: only --steps may change, not {changed[0]!r}"
        )
    config, *_ = RunDirectory(options.resume).read_manifest()
    config = config if steps is None else override(config, {"steps": steps})
    _choose_cores(config)
    with TrainingDisplay(config) as display:
        run = resume(options.resume, config.steps, [display, *loggers(options.log)])
    print(run.path)


def _choose_cores(config: Any) -> None:
    """Choose the CPU devices of JAX before it starts: one for one seed, else one per core."""
    from umdqn.loops.machine import keep_compiled_programs, use_all_cores, use_one_core
    from umdqn.runs.build import is_compiled

    keep_compiled_programs()
    if config.seeds == 1 and is_compiled(config):
        # Starts JAX, so that the `use_all_cores` of `train_config` has no effect.
        use_one_core()
    else:
        use_all_cores()


COMMANDS = (Command("train", "Train an agent; writes a run directory.", train, _add_train),)
"""Commands that train one run."""
