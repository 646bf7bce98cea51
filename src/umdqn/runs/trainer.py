"""The training loop of a run: chunks, evaluations, checkpoints."""

from __future__ import annotations

import threading
import time
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from umdqn.agents.agent import Agent
from umdqn.agents.fixed import PolicyFault
from umdqn.envs.hosted import EnvironmentFault
from umdqn.errors import UmdqnError, notice
from umdqn.loops.machine import peak_memory
from umdqn.loops.progress import Progress
from umdqn.loops.training import Training
from umdqn.runs.build import build_training, evaluate, is_compiled
from umdqn.runs.callbacks import Callbacks, Report
from umdqn.runs.config import Config
from umdqn.runs.directory import RunDirectory
from umdqn.runs.records import Mark
from umdqn.runs.warnings import Warnings

# Bytes of replay memory above which the user is notified.
_MUCH_MEMORY = 100_000_000
_BEGINNING = Mark(0, None)


class Interrupted(UmdqnError):
    """The user stopped the run; it is saved and can be resumed."""


class Trainer:
    """Advances one run: trains in chunks, evaluates, saves, reports to a callback."""

    def __init__(self, config: Config, agent: Agent, directory: RunDirectory, callback: Callbacks):
        self.config, self.agent = config, agent
        self.directory, self.callback = directory, callback
        self._hosted = not is_compiled(config)
        self.step = 0
        self._stopping = False
        """Whether a callback has asked to stop."""
        self._begun = time.monotonic()
        """Start time of training, moved back by the time that earlier processes spent on it."""
        self.training: Training
        self._build_training()
        self.score: float | None = None
        self._warnings = Warnings(config, agent.spec.reward_clip is not None)
        self._sound: dict[int, PyTree] = {}
        """Agents after the last chunk, of environments that may fail in the middle of one."""
        self._losses: dict[int, Progress] = {}

    def _build_training(self) -> None:
        """Build the training; a large replay memory is allocated at once, and announced."""
        config = self.config
        memory = config.replay.memory(self.agent.spec.observation, config.num_envs)
        size = memory.nbytes * config.seeds
        much = self._hosted and size > _MUCH_MEMORY
        if much:
            rows = f"{config.replay.capacity:,} transitions"
            notice(f"replay memories of {rows} take {size / 1e9:.2f} GB")
        self.training = training = build_training(config, self.agent)
        if much:
            try:
                training.warm()
                # Saving fragments freed memory, so that programs then allocate more.
                self.directory.checkpoints.rehearse(training.snapshots())
                training.warm()
            except BaseException:
                training.close()
                raise
            if peak := peak_memory():
                notice(f"with all programs this process takes about {peak / 1e9:.2f} GB to the end")

    def run(self, interrupted: threading.Event) -> str:
        """Train to the end, or until a callback asks to stop, and return the status.

        Saves and raises `Interrupted` once the event is set.
        """
        self._heed(self.callback.on_start(self.directory.path, self.config, self.step))
        try:
            return self._run(interrupted)
        except (EnvironmentFault, PolicyFault):
            # The agents of the last whole chunk are sound.
            self.directory.checkpoints.save_agents(self.step, self._sound)
            raise
        finally:
            self.training.close()

    def restore(self) -> None:
        """Resume from the newest readable checkpoint; everything after it is discarded."""
        like = jax.eval_shape(self.agent.init, jax.random.key(0))
        likes = dict.fromkeys(self.config.all_seeds, like)
        checkpoints = self.directory.checkpoints
        *_, manifest = self.directory.read_manifest()
        if manifest["step"] == 0 and not checkpoints.steps():
            # The run ended before its first checkpoint: start from the beginning.
            checkpoints.make()
            self.directory.records.cut(_BEGINNING)
            checkpoints.clean(self.config.checkpoint_keep)
            return
        records = self.directory.records
        self.step, (restored, trainer) = checkpoints.newest_whole(
            likes, manifest["step"], lambda saved: records.check(_mark(saved))
        )
        self._begun -= manifest.get("seconds", 0.0)
        self.training.restore(list(restored.values()), str(checkpoints.agent_path(self.step)))
        self.score = trainer["score"]
        self._losses = {int(seed): _saved(values) for seed, values in trainer["losses"].items()}
        records.cut(_mark(trainer))
        checkpoints.forget_after(self.step)
        checkpoints.clean(self.config.checkpoint_keep)
        # The run is not finished any more, even if it ends before its next checkpoint.
        self._write_manifest("running")

    def _heed(self, go_on: bool) -> None:
        self._stopping |= not go_on

    def _run(self, interrupted: threading.Event) -> str:
        if self.step == 0:
            self.save("running")
        while self.step < self.config.steps:
            if self._stopping:
                self.save("stopped")
                return "stopped"
            self.advance()
            if self.due(self.config.evaluation.every):
                self.evaluate()
            if self.due(self.config.checkpoint_every) and self.step < self.config.steps:
                self.save("running")
            if interrupted.is_set() and self.step < self.config.steps:
                self.save("interrupted")
                path = self.directory.path
                raise Interrupted(
                    f"interrupted at step {self.step}; saved in {path}: resume with "
                    f"umdqn train --resume {path}"
                )
        self.save("finished")
        return "finished"

    def due(self, every: int) -> bool:
        """Return whether something that happens every so many steps happens now."""
        return self.step % every == 0 or self.step == self.config.steps

    def advance(self) -> None:
        """Train one chunk, shortened so that it ends where an evaluation or checkpoint is due."""
        config = self.config
        periods = (config.chunk, config.evaluation.every, config.checkpoint_every)
        stop = min(config.steps, *(self.step - self.step % period + period for period in periods))
        progress = self.training.advance(stop - self.step)
        self.step = stop
        if self._hosted:
            self._sound = self._agents()
        self.check_finite(progress)
        for seed, report in zip(config.all_seeds, progress, strict=True):
            before = self._losses.get(seed)
            self._losses[seed] = report if before is None else _merge(before, report)
        self._heed(self.callback.on_chunk(Report(self.step, progress, self.score)))

    def check_finite(self, progress: list[Progress]) -> None:
        """Stop the run if a loss was not finite."""
        for seed, report in zip(self.config.all_seeds, progress, strict=True):
            if report.first_bad_step >= 0:
                checkpoints = self.directory.checkpoints
                last = checkpoints.agent_path(checkpoints.steps()[-1])
                raise UmdqnError(
                    f"training stopped: the loss of seed {seed} was not finite at step "
                    f"{report.first_bad_step}; the last good checkpoint is {last}"
                )

    def evaluate(self) -> None:
        """Score every seed and write the records."""
        records: list[dict[str, Any]] = []
        outside = []
        for seed, state in zip(self.config.all_seeds, self.training.agents(), strict=True):
            episodes = self.config.evaluation.episodes
            returns = evaluate(self.config, self.agent, state.learned, seed, self.step, episodes)
            outside.append(self._share_outside(np.asarray(returns.discounted)))
            records.append(
                {
                    "step": self.step,
                    "seed": seed,
                    "return_mean": float(returns.undiscounted.mean()),
                    "return_std": float(returns.undiscounted.std()),
                    "discounted_mean": float(returns.discounted.mean()),
                    **_summary(self._losses.pop(seed)),
                }
            )
            self.directory.records.append(records[-1])
        self.score = sum(record["return_mean"] for record in records) / len(records)
        self._warnings.consider(self.step, records, sum(outside) / len(outside))
        self._heed(self.callback.on_evaluation(self.step, records))

    def _share_outside(self, returns: np.ndarray) -> float:
        """The share of returns outside of a fixed domain."""
        domain = self.config.domain
        return 0.0 if domain is None else domain.share_outside(returns)

    def _agents(self) -> dict[int, PyTree]:
        agents = jax.device_get(self.training.agents())
        return dict(zip(self.config.all_seeds, agents, strict=True))

    def save(self, status: str) -> None:
        """Write a checkpoint and the manifest."""
        snapshots = dict(zip(self.config.all_seeds, self.training.snapshots(), strict=True))
        losses = {
            str(seed): [(np.asarray(n).item(), np.asarray(n).dtype.name) for n in progress]
            for seed, progress in self._losses.items()
        }
        written = self.directory.records.mark()
        trainer = {
            "score": self.score,
            "losses": losses,
            "metrics_bytes": written.size,
            "metrics_sha256": written.sha256,
        }
        keep = self.config.checkpoint_keep
        self.directory.checkpoints.save(self.step, snapshots, trainer, keep)
        self.directory.thin(self.config)
        self.directory.records.write_table()
        self._write_manifest(status)
        self._heed(self.callback.on_checkpoint(self.step, self.directory.path))

    def _write_manifest(self, status: str) -> None:
        # Some virtual machines let this clock go back.
        seconds = max(time.monotonic() - self._begun, 0.0)
        self.directory.write_manifest(self.config, status, self.step, seconds)


def _mark(trainer: dict[str, Any]) -> Mark:
    """Return how much of the metrics had been written when a checkpoint was saved."""
    return Mark(trainer["metrics_bytes"], trainer.get("metrics_sha256"))


def _saved(values: list[Any]) -> Progress:
    """Return the sums since the last evaluation that a checkpoint holds."""
    try:
        return Progress(*(np.asarray(number, kind) for number, kind in values))
    except (OverflowError, ValueError) as error:
        raise UmdqnError(
            f"the checkpoint is corrupt: its losses are out of range: {error}"
        ) from None


def _merge(first: Progress, second: Progress) -> Progress:
    sums = Progress(*(a + b for a, b in zip(first, second, strict=True)))
    return sums._replace(first_bad_step=second.first_bad_step)


def _summary(progress: Progress) -> dict[str, float | None]:
    """Return averages over the chunks since the last evaluation."""
    episodes, updates = int(progress.episodes), int(progress.updates)
    return {
        "train_return_mean": float(progress.returns) / episodes if episodes else None,
        "train_episodes": episodes,
        "loss_mean": float(progress.loss) / updates if updates else None,
        "clipped_share": int(progress.clipped) / updates if updates else None,
        "edge_mass": float(progress.edge_mass) / updates if updates else None,
    }
