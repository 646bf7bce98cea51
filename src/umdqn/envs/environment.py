"""The interface of compiled environments: pure functions of a state and a random key."""

from __future__ import annotations

import abc
from typing import NamedTuple

from jaxtyping import Array, Bool, Float, Int, PyTree

from umdqn.specs import EnvSpec, Key


class Outcome(NamedTuple):
    """Reward and termination of one step; the loop applies the time limit, not the environment."""

    reward: Float[Array, ""]
    terminated: Bool[Array, ""]


class Environment(abc.ABC):
    """An environment that JAX can compile.

    Two environments are equal if they have the same class and equal attributes, so that JAX
    programs with a static environment compile once. Attributes must therefore be hashable and must
    not change after construction.
    """

    spec: EnvSpec

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), frozenset(vars(self).items())))

    @property
    def time_limit(self) -> int:
        """Steps after which an episode is truncated; every compiled environment has a limit."""
        assert self.spec.time_limit is not None
        return self.spec.time_limit

    @abc.abstractmethod
    def reset(self, key: Key) -> PyTree:
        """Draw a state from the initial distribution."""

    @abc.abstractmethod
    def step(self, state: PyTree, action: Int[Array, ""], key: Key) -> tuple[PyTree, Outcome]:
        """Return the next state and the outcome; a terminal state is returned, not reset."""

    @abc.abstractmethod
    def observe(self, state: PyTree) -> Float[Array, "..."]:
        """Return the observation of a state."""
