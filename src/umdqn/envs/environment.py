"""What a compiled environment is: pure, keyed functions over a state that is a value."""

from __future__ import annotations

import abc
from typing import NamedTuple

from jaxtyping import Array, Bool, Float, Int, PyTree

from umdqn.types import EnvSpec, Key


class Outcome(NamedTuple):
    """What a step brings. The time limit is the loop's affair: it ends no return."""

    reward: Float[Array, ""]
    terminated: Bool[Array, ""]


class Environment(abc.ABC):
    """An environment whose every function compiles."""

    spec: EnvSpec

    @property
    def time_limit(self) -> int:
        """Steps after which an episode is cut off; every compiled environment has a limit."""
        assert self.spec.time_limit is not None
        return self.spec.time_limit

    @abc.abstractmethod
    def reset(self, key: Key) -> PyTree:
        """A state drawn from the initial distribution."""

    @abc.abstractmethod
    def step(self, state: PyTree, action: Int[Array, ""], key: Key) -> tuple[PyTree, Outcome]:
        """The next state, not reset when it is terminal, and what came of the step."""

    @abc.abstractmethod
    def observe(self, state: PyTree) -> Float[Array, "..."]:
        """What the agent sees of a state."""
