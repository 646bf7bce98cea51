"""Training as users start it: new runs, and runs that are resumed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from umdqn.agents.agent import Agent
from umdqn.envs.catalogue import named
from umdqn.errors import UmdqnError, check, notice, one_line
from umdqn.loops.machine import return_freed_memory, use_all_cores
from umdqn.runs.build import build_agent, check_memory, environment
from umdqn.runs.callbacks import Callback, Callbacks
from umdqn.runs.config import Config
from umdqn.runs.configure import configure
from umdqn.runs.directory import RunDirectory, versions
from umdqn.runs.display import display_of
from umdqn.runs.fields import check_saved, override
from umdqn.runs.interrupts import deferred_interrupt
from umdqn.runs.run import Run, load
from umdqn.runs.trainer import Interrupted, Trainer
from umdqn.runs.trust import trust_run
from umdqn.specs import EnvSpec


def train(
    env: Any = "grid-world",
    agent: str = "umdqn-c",
    preset: str = "tuned",
    *,
    steps: int | None = None,
    seeds: int | None = None,
    out: str | Path | None = None,
    callbacks: Callback | Sequence[Callback] = (),
    progress: bool | None = None,
    **overrides: Any,
) -> Run:
    """Train an agent on an environment and return the run.

    The environment is a name, a Gymnasium environment, or a function that makes one. Every field of
    the configuration is a keyword: `replay={"capacity": 5000}`, `metric=MyMetric()`, or by its
    dotted name, `**{"metric.kappa": 0.02}`; names that other libraries use work, too
    (`gamma=0.99`). Callbacks are told of chunks, evaluations and checkpoints, and can stop the run.
    Progress is shown in terminals and notebooks; `progress=False` hides it, and True prints lines
    anywhere else.
    """
    # Before anything starts JAX, which then keeps the devices that it has found.
    use_all_cores()
    given = {"steps": steps, "seeds": seeds}
    overrides |= {name: value for name, value in given.items() if value is not None}
    config = configure(named(env), agent, preset, overrides)
    return train_config(config, Path(out) if out is not None else None, callbacks, progress)


def train_config(
    config: Config,
    out: Path | None = None,
    callbacks: Callback | Sequence[Callback] = (),
    progress: bool | None = False,
) -> Run:
    """Train a configuration in a new run directory."""
    use_all_cores()
    with _told(config, callbacks, progress) as callback:
        return _train_new(config, out, callback)


@contextmanager
def _told(
    config: Config, callbacks: Callback | Sequence[Callback], progress: bool | None
) -> Iterator[Callbacks]:
    """Yield who is told of a training: its display, where there is one, and the user's own."""
    display = display_of(config, progress)
    with nullcontext() if display is None else display:
        yield Callbacks.of(callbacks, *([] if display is None else [display]))


def _train_new(config: Config, out: Path | None, callback: Callbacks) -> Run:
    check_saved(config)
    # Before the directory is made: a configuration that cannot be built leaves nothing behind.
    agent = build_agent(config)
    agent.check()
    check_memory(config, agent)
    warmup = config.replay.warmup
    if config.steps <= warmup:
        notice(
            f"{warmup:,} random steps (replay.warmup) come before the first update, "
            f"so that {config.steps:,} steps learn nothing"
        )
    directory = RunDirectory.claim(config, out)
    with directory.locked():
        directory.begin(config)
        return _train(config, agent, directory, callback)


def resume(
    path: str | Path,
    steps: int | None = None,
    callbacks: Callback | Sequence[Callback] = (),
    progress: bool | None = None,
    trust: bool = False,
) -> Run:
    """Resume a run that was killed, interrupted or stopped, or extend a finished one.

    Progress is shown as by `train`. `trust` allows a run that you did not make on this machine to
    import the code that it names.
    """
    use_all_cores()
    if trust:
        trust_run(Path(path))
    directory = RunDirectory(Path(path))
    config, spec, manifest = directory.read_manifest()
    _check_same(directory.path, config, spec, manifest["versions"])
    before = config.steps
    if steps is not None:
        config = override(config, {"steps": steps})
    with directory.locked(), _told(config, callbacks, progress) as callback:
        reached = (directory.checkpoints.steps() or [0])[-1]
        check(config.steps >= reached, "steps", config.steps, f"at least {reached}, done")
        if manifest["status"] == "finished" and config.steps == reached:
            notice(f"{path} is finished; --steps can make it longer than {reached:,} steps")
            return load(path)
        if config.steps != before and config.optimiser.depends_on_length:
            notice(
                f"the learning rate falls over {config.steps:,} steps now, instead of {before:,}: "
                "it continues at what it would be in a run of that length"
            )
        agent = build_agent(config)
        check_memory(config, agent)
        return _train(config, agent, directory, callback, resumes=True)


def _check_same(path: Path, config: Config, spec: EnvSpec, before: dict[str, str]) -> None:
    """Raise if the environment has changed; notify the user if versions have."""
    now = environment(config).spec
    for field in dataclasses.fields(EnvSpec):
        was, is_now = getattr(spec, field.name), getattr(now, field.name)
        if was != is_now:
            raise UmdqnError(
                f"{path} cannot be resumed: {field.name} of environment {config.env!r} is "
                f"{is_now}, and was {was} when the run began"
            )
    current = versions()
    changed = [
        f"{name} {before.get(name)} -> {current[name]}"
        for name in current
        if current[name] != before.get(name)
    ]
    if changed:
        notice(f"{path} is resumed with other versions, not bit for bit: {', '.join(changed)}")


def train_once(config: Config, path: Path, callbacks: Sequence[Callback] = ()) -> Run:
    """Train a configuration in a directory reserved for it.

    A finished run is loaded, an unfinished one is resumed from its last checkpoint.
    """
    directory = RunDirectory(path)
    if directory.vacant():
        return train_config(config, path, callbacks)
    found, _, manifest = directory.read_manifest()
    if found != config:
        raise UmdqnError(
            f"{path} holds a run with another configuration (steps, seeds or version): "
            "give another --out, or move it away"
        )
    return load(path) if manifest["status"] == "finished" else resume(path, None, callbacks, False)


def _train(
    config: Config,
    agent: Agent,
    directory: RunDirectory,
    callback: Callbacks,
    resumes: bool = False,
) -> Run:
    with deferred_interrupt() as interrupted:
        try:
            trainer = Trainer(config, agent, directory, callback)
            if resumes:
                trainer.restore()
            status = trainer.run(interrupted)
        except Interrupted:
            callback.on_end("interrupted")
            raise
        except BaseException as error:
            directory.fail(str(error) if isinstance(error, UmdqnError) else one_line(error))
            callback.on_end("failed")
            raise
        finally:
            return_freed_memory()
    callback.on_end(status)
    return Run(directory, agent=agent)
