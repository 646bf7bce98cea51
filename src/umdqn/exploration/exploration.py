"""What an exploration rule is."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from umdqn.parts.part import Part
from umdqn.specs import Key


class Moment(NamedTuple):
    """When an action is chosen. Counts restart at 0 when warm-up ends.

    Both are the same number unless several copies of an environment (`num_envs`) step together.
    """

    step: Int[Array, ""]
    """Environment steps of all copies: use it for schedules."""
    choice: Int[Array, ""]
    """Actions that each copy has chosen."""

    @classmethod
    def on_host(cls, step: int, copies: int = 1) -> Moment:
        """Return the moment of a step, as compiled programs take it without converting it first."""
        numbers: Any = (np.int32(step), np.int32(step // copies))
        return cls(*numbers)


@dataclasses.dataclass(frozen=True)
class Exploration(Part, abc.ABC):
    """How a training agent departs from its greedy choice; pure, so that both loops share it.

    The key is the same at every choice: `fold_in(key, moment.choice)` gives fresh randomness.
    Warm-up calls `random`, training `act`; with a fixed policy, warm-up calls `act` too.
    Evaluations do not use the rule.
    """

    @abc.abstractmethod
    def act(
        self,
        key: Key,
        moment: Moment,
        actions: int,
        scores: Callable[[], Float[Array, "actions"]],
    ) -> Int[Array, ""]:
        """Return an action.

        `scores` evaluates the network and applies the decision rule; a rule that does not call it
        saves that time. With a fixed policy it gives 1 for its action and 0 for others.
        """

    def random(self, key: Key, moment: Moment, actions: int) -> Int[Array, ""]:
        """Return an action before learning begins: any, with equal probability."""
        return jax.random.randint(jax.random.fold_in(key, moment.choice), (), 0, actions)
