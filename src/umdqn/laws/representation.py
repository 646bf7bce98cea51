"""What a representation is: hyperparameters that build a head, and a head that gives laws."""

from __future__ import annotations

import abc
import dataclasses

import equinox as eqx
from jaxtyping import Array, Float, Int

from umdqn.laws.law import Law
from umdqn.types import Domain, Key


class Head(eqx.Module):
    """From an embedding to the laws of all actions."""

    @abc.abstractmethod
    def laws(self, features: Float[Array, "features"]) -> Law:
        """The laws of all actions, on a leading axis."""

    @abc.abstractmethod
    def law(self, features: Float[Array, "features"], action: Int[Array, ""]) -> Law:
        """The law of one action."""


@dataclasses.dataclass(frozen=True)
class Representation(abc.ABC):
    """The hyperparameters of a head."""

    @abc.abstractmethod
    def build(self, features: int, actions: int, domain: Domain, key: Key) -> Head:
        """A freshly initialised head."""
