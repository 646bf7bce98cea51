"""What a fixed policy is: one that an agent follows to learn its laws, without improving it.

`agents/policies.py` has the kinds; `runs/policy_names.py` finds one by its name.
"""

from __future__ import annotations

import abc

import numpy as np
from jaxtyping import Array, Int, Shaped

from umdqn.errors import UmdqnError


class PolicyFault(UmdqnError):
    """A policy raised, or returned something that is no action."""


class FixedPolicy(abc.ABC):
    """Chooses one action in each observation. Equal policies share their compiled programs."""

    @abc.abstractmethod
    def choose(self, observations: np.ndarray) -> np.ndarray:
        """Return the actions in a batch of observations, for environments that run in Python."""

    @abc.abstractmethod
    def act(self, observation: Shaped[Array, "..."]) -> Int[Array, ""]:
        """Return the action in one observation, inside of a compiled program."""
