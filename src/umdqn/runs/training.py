"""Training as users start it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from umdqn.envs import named
from umdqn.runs.config import Config, configure
from umdqn.runs.directory import RunDirectory
from umdqn.runs.fields import override
from umdqn.runs.run import Run, load
from umdqn.runs.trainer import Interrupted, Trainer, Watcher
from umdqn.types import check, notice


def train(
    env: Any = "grid-world",
    agent: str = "umdqn-c",
    preset: str = "paper",
    *,
    steps: int | None = None,
    seeds: int | None = None,
    out: str | Path | None = None,
    watch: Watcher | None = None,
    **overrides: Any,
) -> Run:
    """Train an agent on an environment and return the run.

    The environment is a name, a Gymnasium environment, or a function that makes one.
    Any field of the configuration is a keyword by its dotted name, through a dictionary:
    `train(**{"metric.kappa": 0.02})`. `watch` is called after every chunk.
    """
    given = {"steps": steps, "seeds": seeds}
    overrides |= {name: value for name, value in given.items() if value is not None}
    config = configure(named(env), agent, preset, overrides)
    return train_config(config, Path(out) if out is not None else None, watch)


def train_config(
    config: Config,
    out: Path | None = None,
    watch: Watcher | None = None,
    on_start: Callable[[Path], None] | None = None,
) -> Run:
    """Train what a configuration says, in a new run directory."""
    # Whatever cannot be built is refused before a directory is made for it.
    config.build_agent()
    directory = RunDirectory.create(config, out)
    with directory.locked():
        return _train(config, directory, watch, on_start)


def resume(
    path: str | Path,
    steps: int | None = None,
    watch: Watcher | None = None,
    on_start: Callable[[Path], None] | None = None,
) -> Run:
    """Go on with a run that was killed, interrupted, or finished and should be longer."""
    directory = RunDirectory(Path(path))
    config, _, manifest = directory.read_manifest()
    if steps is not None:
        config = override(config, {"steps": steps})
    with directory.locked():
        reached = directory.checkpoints.steps()[-1:] or [0]
        check(config.steps >= reached[0], "steps", config.steps, f"at least {reached[0]}, done")
        if manifest["status"] == "finished" and config.steps == reached[0]:
            notice(f"{path} is finished; --steps can make it longer than {reached[0]:,} steps")
            return load(path)
        return _train(config, directory, watch, on_start, resumes=True)


def _train(
    config: Config,
    directory: RunDirectory,
    watch: Watcher | None,
    on_start: Callable[[Path], None] | None,
    resumes: bool = False,
) -> Run:
    if on_start:
        on_start(directory.path)
    with _deferred_interrupt() as interrupted:
        try:
            trainer = Trainer(config, directory, watch or (lambda report: None))
            if resumes:
                trainer.restore()
            trainer.run(interrupted)
        except Interrupted:
            raise
        except BaseException as error:
            directory.fail(config, str(error) or type(error).__name__)
            raise
    return load(directory.path)


@contextmanager
def _deferred_interrupt() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C into a flag, so that a chunk ends and is saved; a second one kills."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = signal.getsignal(signal.SIGINT)

    def note(signum: int, frame: Any) -> None:
        asked.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
