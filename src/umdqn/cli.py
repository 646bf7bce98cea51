"""The command line: parses, calls, prints."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn, get_args, get_origin

from umdqn import commands, sweep_commands
from umdqn.types import Domain, Notice, UmdqnError, one_line, unknown

_INTERRUPTED = 130


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        raise UmdqnError(f"{message} (see {self.prog} --help)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; the exit code is 0 unless something went wrong."""
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(tokens)
    except UmdqnError as error:
        from umdqn.runs import Interrupted

        print(f"umdqn: {error}", file=sys.stderr)
        return _INTERRUPTED if isinstance(error, Interrupted) else 1
    except (OSError, MemoryError) as error:
        if isinstance(error, BrokenPipeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        print(f"umdqn: {error or 'out of memory'}", file=sys.stderr)
        return 1
    except RuntimeError as error:
        # How XLA says that there is no memory.
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        print(f"umdqn: out of memory: {one_line(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("umdqn: interrupted", file=sys.stderr)
        return _INTERRUPTED


def _run(tokens: list[str]) -> int:
    parser, commands = _parser()
    if tokens and not tokens[0].startswith("-") and tokens[0] not in commands:
        raise unknown("command", tokens[0], commands)
    options, extra = parser.parse_known_args(tokens)
    for token in extra:
        if token.startswith("--"):
            name = token.removeprefix("--").partition("=")[0]
            raise unknown("option", name, _option_names(commands.get(options.command, parser)))
    if extra:
        parser.error(f"unexpected argument {extra[0]!r}")
    if not options.command:
        parser.print_help()
        return 0
    from umdqn.loops import keep_compiled_programs

    keep_compiled_programs()
    _print_notices()
    options.run(options)
    return 0


def _parser() -> tuple[_Parser, dict[str, argparse.ArgumentParser]]:
    parser = _Parser(prog="umdqn", description=__doc__, allow_abbrev=False)
    parser.description = "Distributional reinforcement learning with continuous laws of the return."
    parser.add_argument("--version", action="version", version=f"umdqn {version('umdqn')}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND")

    def command(name: str, help: str) -> argparse.ArgumentParser:
        sub = subparsers.add_parser(name, help=help, description=help, allow_abbrev=False)
        where = sweep_commands if hasattr(sweep_commands, name) else commands
        sub.set_defaults(run=getattr(where, name))
        return sub

    _add_train(command("train", "Train an agent; writes a run directory."))
    _add_readers(command)
    study = command("study", "Train and compare many agents: how true are their laws?")
    study.add_argument("name", choices=["laws"], metavar="NAME", help="laws")
    study.add_argument("--out", required=True, type=Path, help="directory; what is there is kept")
    study.add_argument("--seeds", default="5", help="seeds (default 5)")
    study.add_argument("--steps", help="steps a seed (default: those of the study)")
    study.add_argument("--only", nargs="+", metavar="SECTION", help="sections (default: all)")
    _add_sweep(command("sweep", "Train many runs: environments x agents x fields x seeds."))
    compare = command("compare", "Curves and statistics of the algorithms of sweeps and runs.")
    compare.add_argument(
        "paths", nargs="+", type=Path, metavar="PATH", help="sweeps, runs, or results.csv of sweeps"
    )
    compare.add_argument("--out", required=True, type=Path, help="directory for the report")
    for axis in ("env", "agent"):
        compare.add_argument(
            f"--{axis}", nargs="+", default=[], metavar=axis.upper(), help="only these"
        )
    _add_reproduce(command("reproduce", "Make the figures and tables of the paper."))
    command("agents", "List the agents.")
    command("envs", "List the environments.")
    return parser, dict(subparsers.choices)


def _add_readers(command: Callable[[str, str], argparse.ArgumentParser]) -> None:
    """The commands that read one run."""
    evaluate = command("evaluate", "Play episodes with the agents of a run.")
    accuracy = command("accuracy", "Distance of learned laws to the exact ones.")
    laws = command("laws", "Draw the laws of all actions in a state.")
    calibrate = command("calibrate", "Whether realised returns fall where laws say.")
    watch = command("watch", "Write an episode with the laws of all actions beside it.")
    for sub in (evaluate, accuracy, laws, calibrate, watch):
        sub.add_argument("directory", metavar="RUN", type=Path, help="run directory")
        sub.add_argument("--checkpoint", default="last", help="last (default), best or a step")
    for sub in (evaluate, accuracy, calibrate):
        sub.add_argument("--json", action="store_true", help="print one JSON object only")
    evaluate.add_argument("--episodes", default="100", help="episodes per seed (default 100)")
    calibrate.add_argument("--episodes", default="1000", help="episodes per seed (default 1000)")
    calibrate.add_argument("--out", type=Path, help="picture to write")
    laws.add_argument("--state", required=True, help="state, such as 2,6")
    laws.add_argument("--out", required=True, type=Path, help="picture to write")
    watch.add_argument("--out", required=True, type=Path, help="animation to write (.gif or .webp)")
    watch.add_argument("--seed", help="seed whose policy plays (default: the first)")
    watch.add_argument("--steps", default="1000", help="most steps (default 1000)")


def _add_reproduce(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="laws, laws-baselines, curves, comparison"
    )
    parser.add_argument("--scale", default="smoke", help="smoke (default), short or paper")
    parser.add_argument("--env", nargs="+", default=[], help="some environments only")
    parser.add_argument("--out", required=True, type=Path, help="directory; nothing is redone")
    _add_workers(parser)


def _add_sweep(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="TOML, or use options")
    parser.add_argument("--env", nargs="+", help="environments")
    parser.add_argument("--agent", nargs="+", help="agents")
    parser.add_argument("--preset", nargs="+", help="presets (default paper)")
    parser.add_argument(
        "--vary",
        nargs="+",
        action="append",
        default=[],
        metavar=("FIELD", "VALUE"),
        help="one more axis: a field and its values",
    )
    parser.add_argument("--seeds", help="seeds of each (default 1)")
    parser.add_argument("--seeds-per-run", help="seeds that one process trains")
    parser.add_argument("--out", required=True, type=Path, help="directory; what is there is kept")
    _add_workers(parser)
    _add_fields(parser, ("env", "agent", "preset", "seeds"))


def _add_workers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workers", help="processes at a time (default: one a core)")
    parser.add_argument("--ray", metavar="ADDRESS", help="run on a Ray cluster; local starts one")


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("env", nargs="?", metavar="ENV", help="default: grid-world")
    parser.add_argument("agent", nargs="?", metavar="AGENT", help="default: umdqn-c")
    parser.add_argument("--preset", help="paper (default) or tuned")
    parser.add_argument("--out", type=Path, help="run directory (default: fresh, under runs/)")
    parser.add_argument("--resume", type=Path, metavar="RUN", help="go on with a run; see --steps")
    parser.add_argument(
        "--log", action="append", default=[], metavar="LOG", help="tensorboard or wandb, too"
    )
    _add_fields(parser, ("env", "agent", "preset"))


def _add_fields(parser: argparse.ArgumentParser, but: Sequence[str]) -> None:
    """An option for every field of the configuration."""
    from umdqn.runs import configure
    from umdqn.runs.fields import all_leaves

    fields = parser.add_argument_group("fields of the configuration, by dotted name")
    for path, hint in all_leaves(configure()).items():
        if path in but:
            continue
        pair = hint is Domain
        dashed = [f"--{path.replace('_', '-')}"] if "_" in path else []
        fields.add_argument(
            f"--{path}",
            *dashed,
            dest=f"field:{path}",
            nargs=2 if pair else None,
            metavar=("Z_MIN", "Z_MAX") if pair else _metavar(hint),
            default=argparse.SUPPRESS,
        )


def _metavar(hint: Any) -> str:
    if get_origin(hint) is tuple:
        return "N,N,..."
    return "|".join(get_args(hint)) if get_args(hint) else hint.__name__.upper()


def _option_names(parser: argparse.ArgumentParser) -> list[str]:
    return [name.removeprefix("--") for name in parser._option_string_actions if name[:2] == "--"]


def _print_notices() -> None:
    """Print what the user should know as lines of their own."""
    usual = warnings.showwarning

    def show(message: Any, category: type[Warning], *where: Any, **rest: Any) -> None:
        if issubclass(category, Notice):
            print(f"note: {message}", file=sys.stderr)
        else:
            usual(message, category, *where, **rest)

    warnings.showwarning = show
    warnings.simplefilter("always", Notice)


if __name__ == "__main__":
    sys.exit(main())
