"""The commands that train: `train`, `law-of`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from umdqn.cli.options import Command, add_fields, add_number, add_trust, given_fields
from umdqn.cli.tables import print_table
from umdqn.errors import UmdqnError, check
from umdqn.parts.ranges import Range
from umdqn.runs.presets import PRESETS

_COLUMNS = {
    "mean": "mean",
    "std": "std",
    "quantile_05": "5%",
    "median": "50%",
    "quantile_95": "95%",
    "worst_tenth": "mean of the worst tenth",
}


_EXAMPLES = """examples:
  umdqn train CartPole-v1 umdqn-w --lr 5e-4 --seeds 2
  umdqn train CartPole-v1 dqn --show-config   every setting, and where it comes from
  umdqn train --help replay                   the options of one part
  umdqn train --resume RUN --steps 200000     a run made longer
"""


def _add_train(parser: argparse.ArgumentParser, tokens: Sequence[str]) -> None:
    parser.usage = "%(prog)s [ENV] [AGENT] [OPTION ...]"
    parser.epilog = _EXAMPLES
    parser.add_argument("env", nargs="?", metavar="ENV", help="environment (default grid-world)")
    parser.add_argument("agent", nargs="?", metavar="AGENT", help="algorithm (default umdqn-c)")
    parser.add_argument("--env", dest="named_env", metavar="ENV", help="the same as ENV")
    parser.add_argument("--agent", dest="named_agent", metavar="AGENT", help="the same as AGENT")
    _add_preset(parser)
    parser.add_argument("--out", type=Path, help="run directory (default: a new one under runs/)")
    parser.add_argument(
        "--resume", type=Path, metavar="RUN", help="resume a run; --steps extends it"
    )
    parser.add_argument(
        "--log",
        action="append",
        default=[],
        metavar="tensorboard|wandb",
        help="also log there (may be repeated)",
    )
    parser.add_argument(
        "--show-config",
        action="store_true",
        help="print the configuration that results from all this, and train nothing",
    )
    parser.add_argument(
        "--json", action="store_true", help="with --show-config: print one JSON object"
    )
    add_trust(parser)
    add_fields(parser, tokens, ("env", "agent", "preset", "policy"))


def _add_preset(parser: argparse.ArgumentParser) -> None:
    names = "|".join(PRESETS)
    parser.add_argument("--preset", metavar=names, help="table of hyperparameters (default tuned)")


def train(options: argparse.Namespace) -> None:
    """Train an agent."""
    from umdqn.cli.configuration import print_config
    from umdqn.runs.configure import configure
    from umdqn.runs.logs import loggers
    from umdqn.runs.start import train_config

    overrides = given_fields(options)
    for name in ("env", "agent"):
        _merge_named(options, name)
    if options.json and not options.show_config:
        raise UmdqnError("--json goes with --show-config")
    if options.resume is not None:
        return _resume(options, overrides)
    check(not options.trust, "trust", True, "with --resume only: what you name yourself is trusted")
    env, agent, preset = options.env or "grid-world", options.agent or "umdqn-c", options.preset
    logs = loggers(options.log)
    config = configure(env, agent, preset or "tuned", overrides)
    if options.show_config:
        return print_config(config, overrides, options.json)
    _choose_cores(config)
    run = train_config(config, options.out, logs, progress=True)
    print(run.path)


def _merge_named(options: argparse.Namespace, name: str) -> None:
    """Accept `--env` and `--agent` instead of the positional arguments."""
    named, positional = getattr(options, f"named_{name}"), getattr(options, name)
    if named is not None and positional is not None:
        raise UmdqnError(f"{name} is given twice: {positional!r} and --{name} {named!r}")
    setattr(options, name, named if positional is None else positional)


def _resume(options: argparse.Namespace, overrides: dict[str, Any]) -> None:
    from umdqn.cli.configuration import print_config
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
    logs = loggers(options.log)
    config, *_ = RunDirectory(options.resume).read_manifest()
    config = config if steps is None else override(config, {"steps": steps})
    if options.show_config:
        return print_config(config, {} if steps is None else {"steps": steps}, options.json)
    _choose_cores(config)
    run = resume(options.resume, config.steps, logs, progress=True)
    print(run.path)


def _choose_cores(config: Any) -> None:
    """Choose how JAX uses cores before it starts: one for one small network, else all."""
    from umdqn.loops.machine import keep_compiled_programs, use_all_cores, use_one_core
    from umdqn.runs.build import trains_on_one_core

    keep_compiled_programs()
    if trains_on_one_core(config):
        # Starts JAX, so that the `use_all_cores` of `train_config` has no effect.
        use_one_core()
    else:
        use_all_cores()


def _add_law_of(parser: argparse.ArgumentParser, tokens: Sequence[str]) -> None:
    parser.usage = "%(prog)s POLICY ENV [OPTION ...]"
    parser.add_argument("policy", metavar="POLICY", help="run directory, or module:attribute")
    parser.add_argument("env", metavar="ENV", help="environment")
    parser.add_argument("--agent", default="umdqn-c", help="algorithm (default umdqn-c)")
    _add_preset(parser)
    random = Range(least=0, most=1)
    add_number(parser, "explore", "Probability of a random action.", random, 0.1, float)
    compared = "Episodes whose returns laws are compared with."
    add_number(parser, "episodes", compared, Range(least=2), 1000)
    parser.add_argument("--out", type=Path, help="run directory (default: a new one under runs/)")
    parser.add_argument("--json", action="store_true", help="print one JSON object only")
    add_trust(parser)
    add_fields(parser, tokens, ("env", "agent", "preset", "policy"))


def law_of(options: argparse.Namespace) -> None:
    """Learn the law of a policy, and compare it with realised returns."""
    from umdqn.runs.policy_law import PolicyLaw, configure_law
    from umdqn.runs.policy_names import trust_policy
    from umdqn.runs.start import train_config

    if options.trust:
        trust_policy(options.policy)
    policy, preset, fields = options.policy, options.preset or "tuned", given_fields(options)
    config = configure_law(policy, options.env, options.agent, preset, options.explore, fields)
    _choose_cores(config)
    result = PolicyLaw(train_config(config, options.out, progress=True))
    start = result.at_start()
    verdict = result.calibration(options.episodes)["verdict"]
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
