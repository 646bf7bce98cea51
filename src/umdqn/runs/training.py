"""Training as users start it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from umdqn.envs import named
from umdqn.runs.callbacks import Callback, Callbacks
from umdqn.runs.config import Config, configure
from umdqn.runs.directory import RunDirectory, versions
from umdqn.runs.fields import override
from umdqn.runs.interrupts import deferred_interrupt
from umdqn.runs.run import Run, load
from umdqn.runs.trainer import Interrupted, Trainer
from umdqn.types import EnvSpec, UmdqnError, check, notice


def train(
    env: Any = "grid-world",
    agent: str = "umdqn-c",
    preset: str = "paper",
    *,
    steps: int | None = None,
    seeds: int | None = None,
    out: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    **overrides: Any,
) -> Run:
    """Train an agent on an environment and return the run.

    The environment is a name, a Gymnasium environment, or a function that makes one.
    Any field of the configuration is a keyword by its dotted name, through a dictionary:
    `train(**{"metric.kappa": 0.02})`. Callbacks hear of chunks, evaluations and checkpoints.
    """
    given = {"steps": steps, "seeds": seeds}
    overrides |= {name: value for name, value in given.items() if value is not None}
    config = configure(named(env), agent, preset, overrides)
    return train_config(config, Path(out) if out is not None else None, callbacks)


def train_config(
    config: Config,
    out: Path | None = None,
    callbacks: Sequence[Callback] = (),
) -> Run:
    """Train what a configuration says, in a new run directory."""
    # Whatever cannot be built is refused before a directory is made for it.
    config.build_agent()
    if config.steps <= config.replay.warmup:
        notice(
            f"{config.replay.warmup:,} random steps (replay.warmup) come before the first update, "
            f"so that {config.steps:,} steps learn nothing"
        )
    callback = Callbacks(callbacks)
    directory = RunDirectory.claim(config, out)
    with directory.locked():
        directory.begin(config)
        return _train(config, directory, callback)


def resume(
    path: str | Path,
    steps: int | None = None,
    callbacks: Sequence[Callback] = (),
) -> Run:
    """Go on with a run that was killed, interrupted, or finished and should be longer."""
    directory = RunDirectory(Path(path))
    config, spec, manifest = directory.read_manifest()
    _check_same(directory.path, config, spec, manifest["versions"])
    before = config.steps
    if steps is not None:
        config = override(config, {"steps": steps})
    callback = Callbacks(callbacks)
    with directory.locked():
        reached = (directory.checkpoints.steps() or [0])[-1]
        check(config.steps >= reached, "steps", config.steps, f"at least {reached}, done")
        if manifest["status"] == "finished" and config.steps == reached:
            notice(f"{path} is finished; --steps can make it longer than {reached:,} steps")
            return load(path)
        if config.steps != before and config.optimiser.schedule != "constant":
            notice(
                f"the learning rate falls over {config.steps:,} steps now, instead of "
                f"{before:,}: from here on it is what a run of that length has"
            )
        return _train(config, directory, callback, resumes=True)


def _check_same(path: Path, config: Config, spec: EnvSpec, before: dict[str, str]) -> None:
    """Refuse to go on in another environment; say if other versions go on."""
    now = config.environment().spec
    for field in dataclasses.fields(EnvSpec):
        was, is_now = getattr(spec, field.name), getattr(now, field.name)
        if was != is_now:
            raise UmdqnError(
                f"{path} cannot go on: {field.name} of environment {config.env!r} is {is_now}, "
                f"and was {was} when the run began"
            )
    current = versions()
    changed = [
        f"{name} {before.get(name)} -> {current[name]}"
        for name in current
        if current[name] != before.get(name)
    ]
    if changed:
        notice(f"{path} goes on with other versions, not bit for bit: {', '.join(changed)}")


def train_once(config: Config, path: Path, callbacks: Sequence[Callback] = ()) -> Run:
    """Train what a configuration says in a directory that is for it alone.

    What is finished there is not done again; what was cut off goes on from its last checkpoint.
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
    return load(path) if manifest["status"] == "finished" else resume(path, callbacks=callbacks)


def _train(
    config: Config,
    directory: RunDirectory,
    callback: Callback,
    resumes: bool = False,
) -> Run:
    with deferred_interrupt() as interrupted:
        try:
            trainer = Trainer(config, directory, callback)
            if resumes:
                trainer.restore()
            trainer.run(interrupted)
        except Interrupted:
            callback.on_end("interrupted")
            raise
        except BaseException as error:
            directory.fail(str(error) or type(error).__name__)
            callback.on_end("failed")
            raise
    callback.on_end("finished")
    return load(directory.path)
