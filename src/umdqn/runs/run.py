"""A trained run, as Python users hold it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Shaped

from umdqn.agents.agent import Agent
from umdqn.agents.state import Learned
from umdqn.calibration.scores import report
from umdqn.calibration.summary import Summary
from umdqn.errors import UmdqnError, check, check_count, notice
from umdqn.laws.law import Law
from umdqn.loops.acting import greedy_program
from umdqn.loops.compilation import kept_programs
from umdqn.loops.episodes import Returns
from umdqn.runs.build import build_agent, evaluate, forecast
from umdqn.runs.curves import as_frame, plot_curve
from umdqn.runs.directory import RunDirectory
from umdqn.runs.files import write_sealed
from umdqn.runs.predict import Policy, batched
from umdqn.runs.schemas import read_calibration
from umdqn.runs.trust import trust_run

Checkpoint = int | Literal["last", "best"]
"""Which checkpoint of a run: the one of a step, the last, or each seed's best."""


@kept_programs
def _laws_program(agent: Agent, batch: bool) -> Callable[[Learned, Any], Law]:
    """Compile the laws of all actions for one observation, or for a batch of observations."""

    def laws(learned: Learned, observation: Shaped[Array, "..."]) -> Law:
        return agent.laws(learned, observation).settled()

    return jax.jit(jax.vmap(laws, in_axes=(None, 0)) if batch else laws)


@kept_programs
def _law_program(agent: Agent, batch: bool) -> Callable[[Learned, Any, Any], Law]:
    """Compile the law of one action for one observation, or for each of a batch."""

    def law(learned: Learned, observation: Shaped[Array, "..."], action: Int[Array, ""]) -> Law:
        return agent.law(learned, observation, action).settled()

    return jax.jit(jax.vmap(law, in_axes=(None, 0, 0)) if batch else law)


class Run:
    """The trained agents of a run directory, one per seed, at a checkpoint."""

    def __init__(
        self,
        directory: RunDirectory,
        checkpoint: Checkpoint = "last",
        agent: Agent | None = None,
    ):
        self.directory = directory
        self.config, self.spec, self.manifest = directory.read_manifest()
        self.agent = (build_agent(self.config, self.spec) if agent is None else agent).refined()
        """The agent that all seeds share; its laws are evaluated finely."""
        like = jax.eval_shape(self.agent.fresh, jax.random.key(0))
        likes = dict.fromkeys(self.config.all_seeds, like)
        checkpoints, kept = directory.checkpoints, directory.checkpoints.steps()
        if checkpoint == "last":
            self.step, states = checkpoints.newest(likes, self.manifest["step"])
            self.steps = dict.fromkeys(likes, self.step)
        else:
            if checkpoint == "best":
                self.steps = directory.best_steps(likes)
            else:
                check(checkpoint in kept, "checkpoint", checkpoint, f"last, best or one of {kept}")
                self.steps = dict.fromkeys(likes, checkpoint)
            self.step = max(self.steps.values())
            agents = {step: checkpoints.agents(step, likes) for step in set(self.steps.values())}
            states = {seed: agents[step][seed] for seed, step in self.steps.items()}
        # The best is evaluated on other episodes than those that selected it.
        self._evaluation = self.config.steps + 1 if checkpoint == "best" else self.step
        self.learned: dict[int, Learned] = {
            seed: jax.tree.map(jnp.asarray, state) for seed, state in states.items()
        }
        """What each seed has learned: parameters and support."""
        self._reports: dict[int, dict[str, Any]] = {}

    def __repr__(self) -> str:
        config = self.config
        seeds = f"{config.seeds} seed" + "s" * (config.seeds > 1)
        trust = f"; laws: {self.trust}" if self.trust else ""
        named = f"{config.label} on {config.env}, {seeds}, {self.age}"
        return f"Run({str(self.path)!r}: {named}{trust})"

    @property
    def path(self) -> Path:
        """The run's directory."""
        return self.directory.path

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that were trained."""
        return self.config.all_seeds

    @property
    def status(self) -> str:
        """How training ended: finished, stopped, interrupted or failed; or running."""
        return self.manifest["status"]

    @property
    def evaluations(self) -> list[dict[str, Any]]:
        """The lines of `metrics.jsonl`, one for each evaluation and seed."""
        return self.directory.read_metrics()

    @property
    def records(self) -> Any:
        """The same as `evaluations`, as a pandas data frame."""
        return as_frame(self.evaluations)

    def plot(self, axes: Any = None, value: str = "return_mean") -> Any:
        """Draw a learning curve on Matplotlib's axes, which are returned.

        It is the mean over seeds with their range; `value` is a column of `records`.
        """
        label = f"{self.config.label} on {self.config.env}"
        return plot_curve(self.evaluations, value, label, axes)

    @property
    def age(self) -> str:
        """How long the agents were trained, for titles."""
        first, last = min(self.steps.values()), self.step
        return f"{last:,} steps" if first == last else f"{first:,} to {last:,} steps"

    def with_steps(self, seeds: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """Add the step of its checkpoint to each seed's results."""
        return {seed: found | {"step": self.steps[int(seed)]} for seed, found in seeds.items()}

    def law(self, observation: Any, seed: int | None = None) -> Law:
        """Return the laws of the return of all actions, of the first seed unless told.

        For one observation the laws have the leading axis `[actions]`: `run.law([2, 6])[0]` is the
        law of action 0. For a batch of observations it is `[batch, actions]`.
        """
        return self.laws(observation, seed)

    def laws(self, observations: Any, seed: int | None = None, batch_size: int = 256) -> Law:
        """Return the laws of all actions, as `law`, for any number of observations.

        Networks see at most `batch_size` observations at a time.
        """
        check_count("batch_size", batch_size)
        batch, single = batched(observations, self.spec.observation)
        learned = self.learned[self._known(seed)]
        program = _laws_program(self.agent, not single)
        if single or len(batch) <= batch_size:
            return program(learned, batch[0] if single else batch)
        # Every piece has the same size, so that one program serves all.
        missing = -len(batch) % batch_size
        padded = np.concatenate([batch, np.repeat(batch[-1:], missing, axis=0)])
        pieces = [
            program(learned, padded[start : start + batch_size])
            for start in range(0, len(padded), batch_size)
        ]
        return jax.tree.map(lambda *parts: jnp.concatenate(parts)[: len(batch)], *pieces)

    def followed(self, observation: Any, seed: int | None = None) -> Law:
        """Return the law of following the policy from an observation, or from each of a batch."""
        batch, single = batched(observation, self.spec.observation)
        learned = self.learned[self._known(seed)]
        actions = np.asarray(greedy_program(self.agent)(learned, batch), np.int32)
        program = _law_program(self.agent, not single)
        return program(learned, *((batch[0], actions[0]) if single else (batch, actions)))

    def _known(self, seed: int | None) -> int:
        if seed is None:
            return self.seeds[0]
        check(seed in self.learned, "seed", seed, f"one of {', '.join(map(str, self.seeds))}")
        return seed

    def policy(self, seed: int | None = None) -> Policy:
        """Return the policy of a seed, of the first unless told: the greedy or the followed one."""
        seed = self._known(seed)
        return Policy(self.agent, self.learned[seed], self.config.evaluation.epsilon, seed)

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[np.ndarray, None]:
        """Return the actions of the first seed's policy, as Stable-Baselines3 does."""
        return self._first_policy.predict(observation, state, episode_start, deterministic)

    @cached_property
    def _first_policy(self) -> Policy:
        return self.policy()

    def evaluate(self, episodes: int) -> dict[int, Returns]:
        """Play new episodes and return their returns, by seed."""
        check_count("episodes", episodes)
        return {
            seed: evaluate(self.config, self.agent, learned, seed, self._evaluation, episodes)
            for seed, learned in self.learned.items()
        }

    def calibration(self, episodes: int = 1_000) -> dict[str, Any]:
        """Compare laws with the returns of new episodes: all seeds together, and per seed.

        The report is kept in memory, and `trust` tells its verdict from then on.
        """
        check_count("episodes", episodes, least=2)
        if self.agent.representation.gives == {"mean"}:
            label = self.config.label
            raise UmdqnError(f"{label} learns expectations: there are no laws to calibrate")
        if episodes not in self._reports:
            found = {
                seed: forecast(self.config, self.agent, learned, seed, episodes)
                for seed, learned in self.learned.items()
            }
            scores = report(found)
            seeds = self.with_steps(scores.pop("seeds"))
            self._reports[episodes] = {**scores, "step": self.step, "seeds": seeds}
        return self._reports[episodes]

    @property
    def trust(self) -> Summary | None:
        """What calibration of this checkpoint found, now or saved earlier; None if never done."""
        if self._reports:
            return Summary.of(self._reports[max(self._reports)])
        return self._saved_trust

    @cached_property
    def _saved_trust(self) -> Summary | None:
        if not self._calibration_path.exists():
            return None
        try:
            steps, trust = read_calibration(self._calibration_path)
            return trust if steps == self._steps_by_name else None
        except UmdqnError as error:
            notice(f"ignoring a saved calibration: {error}")
            return None

    def save_trust(self) -> Path:
        """Write what calibration found into the run's directory, for all who load this checkpoint.

        A calibration that was saved earlier is replaced.
        """
        if not self._reports:
            raise UmdqnError("nothing to save: call calibration() first")
        trust = dataclasses.asdict(Summary.of(self._reports[max(self._reports)]))
        write_sealed(self._calibration_path, {"steps": self._steps_by_name, "trust": trust})
        return self._calibration_path

    @property
    def _calibration_path(self) -> Path:
        return self.path / "calibration.json"

    @property
    def _steps_by_name(self) -> dict[str, int]:
        return {str(seed): step for seed, step in self.steps.items()}


def load(path: str | Path, checkpoint: Checkpoint = "last", trust: bool = False) -> Run:
    """Load the run in a directory at a checkpoint: the last, the one of a step, or the best.

    The best is chosen for each seed by its evaluations during training: the largest mean return.
    `trust` allows a run that you did not make on this machine to import the code that it names.
    """
    if trust:
        trust_run(Path(path))
    return Run(RunDirectory(Path(path)), checkpoint)
