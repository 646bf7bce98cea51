"""The commands that train: `train`, `law-of`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from umdqn.cli.options import Command, add_fields, add_trust, given_fields
from umdqn.cli.tables import print_table
from umdqn.errors import UmdqnError, check, check_count

_COLUMNS = {
    "mean": "mean",
    "std": "std",
    "quantile_05": "5%",
    "median": "50%",
    "quantile_95": "95%",
    "worst_tenth": "mean of the worst tenth",
}


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
    add_trust(parser)
    add_fields(parser, tokens, ("env", "agent", "preset", "policy"))


def train(options: argparse.Namespace) -> None:
    """Train an agent."""
    from umdqn.cli.display import TrainingDisplay
    from umdqn.runs.configure import configure
    from umdqn.runs.logs import loggers
    from umdqn.runs.start import train_config

    overrides = given_fields(options)
    if options.resume is not None:
        return _resume(options, overrides)
    check(not options.trust, "trust", True, "with --resume only: what you name yourself is trusted")
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
    from umdqn.runs.trust import trust_run

    steps = overrides.pop("steps", None)
    given = [name for name in ("env", "agent", "preset", "out") if getattr(options, name)]
    changed = [*given, *overrides]
    if changed:
        raise UmdqnError(
            f"--resume continues a run as it is: only --steps may change, not {changed[0]!r}"
        )
    if options.trust:
        trust_run(options.resume)
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


def _add_law_of(parser: argparse.ArgumentParser, tokens: Sequence[str]) -> None:
    parser.usage = "%(prog)s POLICY ENV [OPTION ...]"
    parser.add_argument("policy", metavar="POLICY", help="run directory, or module:attribute")
    parser.add_argument("env", metavar="ENV", help="environment")
    parser.add_argument("--agent", default="umdqn-c", help="algorithm (default umdqn-c)")
    parser.add_argument("--preset", default="tuned", help="hyperparameters: paper or tuned")
    parser.add_argument(
        "--explore", default="0.1", help="probability of a random action (default 0.1)"
    )
    parser.add_argument("--episodes", default="1000", help="episodes to compare with")
    parser.add_argument("--out", type=Path, help="run directory (default: a new one under runs/)")
    parser.add_argument("--json", action="store_true", help="print one JSON object only")
    add_trust(parser)
    add_fields(parser, tokens, ("env", "agent", "preset", "policy"))


def law_of(options: argparse.Namespace) -> None:
    """Learn the law of a policy, and compare it with realised returns."""
    from umdqn.cli.display import TrainingDisplay
    from umdqn.runs.following import trust_policy
    from umdqn.runs.policy_law import PolicyLaw, configure_law
    from umdqn.runs.start import train_config
    from umdqn.runs.values import read_number

    episodes = read_number("episodes", int, options.episodes)
    check_count("episodes", episodes, least=2)
    policy, fields = options.policy, given_fields(options)
    if options.trust:
        trust_policy(policy)
    config = configure_law(
        policy, options.env, options.agent, options.preset, options.explore, fields
    )
    _choose_cores(config)
    with TrainingDisplay(config) as display:
        result = PolicyLaw(train_config(config, options.out, [display]))
    start = result.at_start()
    verdict = result.calibration(episodes)["verdict"]
    if options.json:
        print(json.dumps({"path": str(result.path), "start": start, "verdict": verdict}))
        return
    print("law of the discounted return in first states:")
    print_table(tuple(_COLUMNS.values()), [[f"{start[name]:.4g}" for name in _COLUMNS]])
    print(f"verdict: {verdict}")
    print(result.path)


COMMANDS = (
    Command("train", "Train an agent; writes a run directory.", train, _add_train),
    Command("law-of", "Learn the law of the return of a policy.", law_of, _add_law_of),
)
"""Commands that train one run."""
