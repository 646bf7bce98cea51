"""Predict actions with a trained agent, by the interface of Stable-Baselines3 policies."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import Any

import jax
import numpy as np

from umdqn.agents.agent import Agent
from umdqn.agents.state import Learned
from umdqn.errors import InvalidField, check
from umdqn.exploration.epsilon_greedy import constant
from umdqn.exploration.exploration import Moment
from umdqn.layouts import encode
from umdqn.loops.acting import acting_program, greedy_program
from umdqn.specs import Observation

EVALUATION_STREAM = 2**31 - 1
"""Separates the randomness of evaluation from that of training."""


def batched(observation: Any, seen: Observation) -> tuple[np.ndarray, bool]:
    """Return observations as a batch, and whether there was a single one; checks the shape.

    They are arrays as agents see them, or what the environment gives: numbers, dicts or tuples.
    """
    structured = encode(seen, observation)
    try:
        found = np.asarray(observation, seen.dtype) if structured is None else structured
    except (TypeError, ValueError, OverflowError) as error:
        shape = f"numbers of shape {seen.shape}, or a batch of such"
        raise InvalidField("observation", observation, shape) from error
    single = found.shape == seen.shape
    good = single or found.shape[1:] == seen.shape
    check(good, "observation", found.shape, f"shape {seen.shape}, or a batch of such")
    return (found[None] if single else found), single


@dataclasses.dataclass
class Policy:
    """The greedy policy of one seed, with the signature of Stable-Baselines3's `predict`."""

    agent: Agent
    learned: Learned
    epsilon: float = 0.0
    """Probability of a random action if `deterministic` is false."""
    seed: int = 0

    def __post_init__(self) -> None:
        self._greedy = greedy_program(self.agent)
        self._key = jax.random.fold_in(jax.random.key(self.seed), EVALUATION_STREAM)
        self._choices = 0

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[np.ndarray, None]:
        """Return the actions for one observation or for a batch of them."""
        spec = self.agent.spec
        batch, single = batched(observation, spec.observation)
        if deterministic:
            chosen = self._greedy(self.learned, batch)
        else:
            moment = Moment.on_host(self._choices)
            chosen = self._explore(self.learned, batch, moment, self._key)
            self._choices += 1
        actions = np.array(chosen, np.int64) + spec.first_action
        return (actions.reshape(()) if single else actions), None

    @cached_property
    def _explore(self) -> Callable[..., Any]:
        agent = dataclasses.replace(self.agent, exploration=constant(self.epsilon))
        return acting_program(agent)
