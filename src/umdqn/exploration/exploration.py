"""What an exploration rule is."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable

import jax
from jaxtyping import Array, Float, Int

from umdqn.parts.part import Part
from umdqn.specs import Key


@dataclasses.dataclass(frozen=True)
class Exploration(Part, abc.ABC):
    """How a training agent departs from its greedy choice; pure, so that both loops share it.

    Randomness depends on the key of the run and the step alone.
    """

    @abc.abstractmethod
    def act(
        self,
        key: Key,
        step: Int[Array, ""],
        actions: int,
        scores: Callable[[], Float[Array, "actions"]],
    ) -> Int[Array, ""]:
        """Return the action of a step since learning began.

        `scores` evaluates the network and applies the decision rule; a rule that does not call it
        saves that time.
        """

    def random(self, key: Key, step: Int[Array, ""], actions: int) -> Int[Array, ""]:
        """Return the action of a step before learning begins: any, with equal probability."""
        return jax.random.randint(jax.random.fold_in(key, step), (), 0, actions)
