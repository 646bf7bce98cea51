"""A trained run, as Python users hold it."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from umdqn.agents import Agent
from umdqn.laws import Law
from umdqn.loops import Returns
from umdqn.runs.directory import RunDirectory
from umdqn.runs.policy import Policy, evaluate_params
from umdqn.types import check, check_count

Checkpoint = int | Literal["last", "best"]
"""Which checkpoint of a run: that of a step, the last, or each seed's best."""


class Run:
    """The agents of a run directory, one a seed, at a checkpoint."""

    def __init__(self, directory: RunDirectory, checkpoint: Checkpoint = "last"):
        self.directory = directory
        self.config, self.spec, self.manifest = directory.read_manifest()
        like = jax.eval_shape(self.agent.init, jax.random.key(0))
        likes = dict.fromkeys(self.config.all_seeds, like)
        checkpoints, kept = directory.checkpoints, directory.checkpoints.steps()
        if checkpoint == "last":
            self.step, states = checkpoints.newest(likes)
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
        # The best is evaluated on episodes that had no part in choosing it.
        self._evaluation = self.config.steps + 1 if checkpoint == "best" else self.step
        self.params = {s: jax.tree.map(jnp.asarray, state.params) for s, state in states.items()}

    def __repr__(self) -> str:
        config = self.config
        seeds = f"{config.seeds} seed" + "s" * (config.seeds > 1)
        return f"Run({str(self.path)!r}: {config.label} on {config.env}, {seeds}, {self.age})"

    @property
    def path(self) -> Path:
        """The run's directory."""
        return self.directory.path

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that were trained."""
        return self.config.all_seeds

    @property
    def age(self) -> str:
        """How long the agents were trained, for titles."""
        first, last = min(self.steps.values()), self.step
        return f"{last:,} steps" if first == last else f"{first:,} to {last:,} steps"

    def with_steps(self, seeds: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """What was found of each seed, and the step of its checkpoint."""
        return {seed: found | {"step": self.steps[int(seed)]} for seed, found in seeds.items()}

    @cached_property
    def agent(self) -> Agent:
        """The agent that all seeds share, its laws as fine as views deserve."""
        refined = self.config.representation.refined()
        config = dataclasses.replace(self.config, representation=refined)
        return config.build_agent(self.spec)

    def law(self, observation: Any, seed: int | None = None) -> tuple[Law, ...]:
        """The laws of the return in a state, one an action; of the first seed unless told."""
        seen = self.spec.observation
        observation = jnp.asarray(np.asarray(observation, seen.dtype))
        check(observation.shape == seen.shape, "observation", observation.shape, str(seen))
        laws = self._laws(self.params[self._known(seed)], observation)
        return tuple(laws[action] for action in range(self.agent.spec.num_actions))

    @cached_property
    def _laws(self) -> Any:
        return jax.jit(self.agent.laws)

    def _known(self, seed: int | None) -> int:
        if seed is None:
            return self.seeds[0]
        check(seed in self.params, "seed", seed, f"one of {', '.join(map(str, self.seeds))}")
        return seed

    def policy(self, seed: int | None = None) -> Policy:
        """The greedy policy of a seed; of the first unless told."""
        seed = self._known(seed)
        return Policy(self.agent, self.params[seed], self.config.evaluation.epsilon, seed)

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[np.ndarray, None]:
        """Actions of the first seed's policy, as Stable-Baselines3 asks for them."""
        return self._first_policy.predict(observation, state, episode_start, deterministic)

    @cached_property
    def _first_policy(self) -> Policy:
        return self.policy()

    def evaluate(self, episodes: int) -> dict[int, Returns]:
        """Returns of fresh episodes, by seed."""
        check_count("episodes", episodes)
        return {
            seed: evaluate_params(self.config, self.agent, params, seed, self._evaluation, episodes)
            for seed, params in self.params.items()
        }


def load(path: str | Path, checkpoint: Checkpoint = "last") -> Run:
    """The run in a directory at a checkpoint: the last, that of a step, or each seed's best.

    The best is the one whose evaluation during training had the largest mean return.
    """
    return Run(RunDirectory(Path(path)), checkpoint)
