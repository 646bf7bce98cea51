"""What a torso is: settings that build a network from one observation to its embedding."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from typing import Any

from jaxtyping import Array, Float, Shaped

from umdqn.parts import objects
from umdqn.parts.part import Part
from umdqn.specs import Key, Observation

Embedding = Callable[[Shaped[Array, "..."]], Float[Array, "features"]]
"""A network from one observation to a vector: an Equinox module."""


@dataclasses.dataclass(frozen=True)
class Torso(Part, abc.ABC):
    """The network that embeds an observation."""

    @abc.abstractmethod
    def build(self, observation: Observation, key: Key) -> Embedding:
        """Return a freshly initialised network, written for one observation."""

    @classmethod
    def adopt(cls, value: Any, name: str | None = None) -> Part | None:
        """Accept a function `(observation, key) -> Equinox module`, such as the module's class."""
        from umdqn.networks.given import Given

        return Given(name or objects.keep("torso", value)) if callable(value) else None
