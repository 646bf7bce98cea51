"""Epsilon-greedy exploration."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from umdqn.exploration.exploration import Exploration, Moment
from umdqn.parts.ranges import Count, Positive, Probability
from umdqn.specs import Key


@dataclasses.dataclass(frozen=True)
class EpsilonGreedy(Exploration):
    """Random actions with a probability that falls: `end + (start - end) exp(-step / decay)`."""

    start: Probability = 1.0
    """Probability of a random action at first."""
    end: Probability = 0.01
    """Probability of a random action in the long run."""
    decay: Positive = 10_000.0
    """Environment steps in which the distance to `end` shrinks by a factor e."""
    repeat: Count = 1
    """Successive choices that share a random draw: more than 1 holds random actions that long."""

    def epsilon(self, step: Int[Array, ""]) -> Float[Array, ""]:
        """Return the probability of a random action."""
        return self.end + (self.start - self.end) * jnp.exp(-step / self.decay)

    def act(
        self,
        key: Key,
        moment: Moment,
        actions: int,
        scores: Callable[[], Float[Array, "actions"]],
    ) -> Int[Array, ""]:
        coin, choice = jax.random.split(self._block_key(key, moment))
        return jax.lax.cond(
            jax.random.uniform(coin) < self.epsilon(moment.step),
            lambda: jax.random.randint(choice, (), 0, actions),
            lambda: jnp.argmax(scores()).astype(jnp.int32),
        )

    def random(self, key: Key, moment: Moment, actions: int) -> Int[Array, ""]:
        return jax.random.randint(self._block_key(key, moment), (), 0, actions)

    def _block_key(self, key: Key, moment: Moment) -> Key:
        """The key of a choice: the same for all choices of a block of `repeat`."""
        return jax.random.fold_in(key, moment.choice - moment.choice % self.repeat)


def constant(epsilon: float) -> EpsilonGreedy:
    """Return the rule with a constant probability, for evaluation."""
    return EpsilonGreedy(start=epsilon, end=epsilon)
