"""What advances a run: chunks, evaluations, checkpoints."""

from __future__ import annotations

import threading
import time
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from umdqn.envs import EnvironmentFault
from umdqn.loops import HostLanes, Lanes, Progress, needed_bytes, peak_memory, use_all_cores
from umdqn.runs.callbacks import Callback, Report
from umdqn.runs.config import Config
from umdqn.runs.directory import RunDirectory
from umdqn.runs.policy import evaluate_params
from umdqn.runs.records import Mark
from umdqn.types import UmdqnError, notice

# Returns outside of the domain, and memory, that are worth a word.
_MUCH_OUTSIDE = 0.01
_MUCH_MEMORY = 100_000_000
_BEGINNING = Mark(0, None)


class Interrupted(UmdqnError):
    """The user stopped the run; everything up to then is saved."""


class Trainer:
    """One run: builds, advances, watches, saves."""

    def __init__(self, config: Config, directory: RunDirectory, callback: Callback):
        use_all_cores()
        self.config, self.directory, self.callback = config, directory, callback
        self.agent = config.build_agent()
        self.step = 0
        self._begun = time.monotonic()
        """When training would have begun if it had never stopped."""
        self.lanes = self._build_lanes()
        self.score: float | None = None
        self._warned = False
        self._sound: dict[int, PyTree] = {}
        self._losses: dict[int, Progress] = {}

    def _build_lanes(self) -> Lanes | HostLanes:
        """The lanes; where they take much memory, all of it at once, and the user is told."""
        config = self.config
        size = needed_bytes(self.agent.spec, config.replay.capacity) * config.seeds
        much = not config.compiled and size > _MUCH_MEMORY
        if much:
            rows = f"{config.replay.capacity:,} transitions"
            notice(f"replay memories of {rows} take {size / 1e9:.2f} GB")
        lanes = config.build_lanes()
        if much and isinstance(lanes, HostLanes):
            try:
                lanes.warm()
                # Saving leaves holes in the memory that programs gave back: they take some anew.
                self.directory.checkpoints.rehearse(lanes.snapshots())
                lanes.warm()
            except BaseException:
                lanes.close()
                raise
            if peak := peak_memory():
                notice(f"with all programs this process takes about {peak / 1e9:.2f} GB to the end")
        return lanes

    def run(self, interrupted: threading.Event) -> None:
        self.callback.on_start(self.directory.path, self.config, self.step)
        try:
            self._run(interrupted)
        except EnvironmentFault:
            # What was learned up to the last chunk is sound: keep it.
            self.directory.checkpoints.save_agents(self.step, self._sound)
            raise
        finally:
            self.lanes.close()

    def restore(self) -> None:
        """Go on from the newest checkpoint; what came after it is forgotten."""
        like = jax.eval_shape(self.agent.init, jax.random.key(0))
        likes = dict.fromkeys(self.config.all_seeds, like)
        checkpoints = self.directory.checkpoints
        *_, manifest = self.directory.read_manifest()
        if manifest["step"] == 0 and not checkpoints.steps():
            # It ended before its first checkpoint: there is only the beginning to go on from.
            checkpoints.make()
            self.directory.records.cut(_BEGINNING)
            checkpoints.clean(self.config.checkpoint_keep)
            return
        records = self.directory.records
        self.step, (restored, trainer) = checkpoints.newest_whole(
            likes, lambda saved: records.check(_mark(saved))
        )
        self._begun -= manifest.get("seconds", 0.0)
        self.lanes.restore(list(restored.values()), str(checkpoints.agent_path(self.step)))
        self.score = trainer["score"]
        self._losses = {
            int(seed): Progress(*(np.asarray(number, kind) for number, kind in values))
            for seed, values in trainer["losses"].items()
        }
        records.cut(_mark(trainer))
        checkpoints.forget_after(self.step)
        checkpoints.clean(self.config.checkpoint_keep)
        # From here on the run is no longer what it was, should it end before its next checkpoint.
        self._write_manifest("running")

    def _run(self, interrupted: threading.Event) -> None:
        if self.step == 0:
            self.save("running")
        while self.step < self.config.steps:
            self.advance()
            if self.due(self.config.evaluation.every):
                self.evaluate()
            if self.due(self.config.checkpoint_every) and self.step < self.config.steps:
                self.save("running")
            if interrupted.is_set() and self.step < self.config.steps:
                self.save("interrupted")
                path = self.directory.path
                raise Interrupted(
                    f"interrupted at step {self.step}; saved in {path}, and goes on with "
                    f"umdqn train --resume {path}"
                )
        self.save("finished")

    def due(self, every: int) -> bool:
        return self.step % every == 0 or self.step == self.config.steps

    def advance(self) -> None:
        """One chunk, shortened so that evaluations and checkpoints fall where they should."""
        config = self.config
        periods = (config.chunk, config.evaluation.every, config.checkpoint_every)
        stop = min(config.steps, *(self.step - self.step % period + period for period in periods))
        progress = self.lanes.advance(stop - self.step)
        self.step = stop
        if isinstance(self.lanes, HostLanes):
            self._sound = self._agents()
        self.check_finite(progress)
        for seed, report in zip(config.all_seeds, progress, strict=True):
            before = self._losses.get(seed)
            self._losses[seed] = report if before is None else _merge(before, report)
        self.callback.on_chunk(Report(self.step, progress, self.score))

    def check_finite(self, progress: list[Progress]) -> None:
        for seed, report in zip(self.config.all_seeds, progress, strict=True):
            if report.first_bad_step >= 0:
                checkpoints = self.directory.checkpoints
                last = checkpoints.agent_path(checkpoints.steps()[-1])
                raise UmdqnError(
                    f"training stopped: the loss of seed {seed} was not finite at step "
                    f"{report.first_bad_step}; the last good checkpoint is {last}"
                )

    def evaluate(self) -> None:
        records: list[dict[str, Any]] = []
        outside = []
        for seed, state in zip(self.config.all_seeds, self.lanes.agents(), strict=True):
            returns = evaluate_params(
                self.config,
                self.agent,
                state.params,
                seed,
                self.step,
                self.config.evaluation.episodes,
            )
            outside.append(self.config.domain.share_outside(np.asarray(returns.discounted)))
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
        self.warn_of_returns_outside(sum(outside) / len(outside))
        self.callback.on_evaluation(self.step, records)

    def warn_of_returns_outside(self, share: float) -> None:
        """Say once that the domain is too narrow; clipped rewards are not what scores count."""
        clipped = self.agent.spec.reward_clip is not None
        if share <= _MUCH_OUTSIDE or self._warned or clipped:
            return
        self._warned = True
        domain = self.config.domain
        notice(
            f"{share:.0%} of the discounted returns at step {self.step:,} lie outside of the "
            f"domain [{domain.low:g}, {domain.high:g}], where laws hold little of their mass; "
            "--domain Z_MIN Z_MAX sets another"
        )

    def _agents(self) -> dict[int, PyTree]:
        agents = jax.device_get(self.lanes.agents())
        return dict(zip(self.config.all_seeds, agents, strict=True))

    def save(self, status: str) -> None:
        snapshots = dict(zip(self.config.all_seeds, self.lanes.snapshots(), strict=True))
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
        self.callback.on_checkpoint(self.step, self.directory.path)

    def _write_manifest(self, status: str) -> None:
        seconds = time.monotonic() - self._begun
        self.directory.write_manifest(self.config, status, self.step, seconds)


def _mark(trainer: dict[str, Any]) -> Mark:
    """Which metrics there were when a checkpoint was saved."""
    return Mark(trainer["metrics_bytes"], trainer.get("metrics_sha256"))


def _merge(first: Progress, second: Progress) -> Progress:
    sums = Progress(*(a + b for a, b in zip(first, second, strict=True)))
    return sums._replace(first_bad_step=second.first_bad_step)


def _summary(progress: Progress) -> dict[str, float | None]:
    """Averages over the chunks since the last evaluation."""
    episodes, updates = int(progress.episodes), int(progress.updates)
    return {
        "train_return_mean": float(progress.returns) / episodes if episodes else None,
        "train_episodes": episodes,
        "loss_mean": float(progress.loss) / updates if updates else None,
    }
