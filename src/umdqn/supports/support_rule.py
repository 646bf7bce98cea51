"""What a rule for supports is: where the law of each state and action is resolved."""

from __future__ import annotations

import abc
import dataclasses
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from umdqn.laws.support import Support
from umdqn.parts.part import Part
from umdqn.specs import Domain, Key


class Unit(NamedTuple):
    """What is common to all states: an origin and a unit of returns, and what they come from."""

    centre: Float[Array, ""]
    scale: Float[Array, ""]
    seen: Float[Array, ""]
    """Targets that the two below are made of, as a number of updates."""
    mean: Float[Array, ""]
    variance: Float[Array, ""]

    @classmethod
    def of(cls, centre: float, scale: float) -> Unit:
        """Return a unit before any target was seen."""
        return cls(*(jnp.float32(number) for number in (centre, scale, 0.0, 0.0, 0.0)))


class Placer(eqx.Module):
    """Gives the supports of all actions, from the embedding of a state."""

    @abc.abstractmethod
    def __call__(self, features: Float[Array, "features"], unit: Unit) -> Support:
        """Return the supports, on a leading axis of actions."""

    @abc.abstractmethod
    def rescaled(self, before: Unit, after: Unit) -> Placer:
        """Return the placer that gives the same supports with another unit."""


@dataclasses.dataclass(frozen=True)
class SupportRule(Part, abc.ABC):
    """Where laws are resolved."""

    needs_domain: ClassVar[bool] = False
    """Whether the user or the environment has to say where returns lie."""

    @abc.abstractmethod
    def unit(self, domain: Domain | None, bounded: bool) -> Unit:
        """Return the unit before learning; `bounded`: laws cannot leave their support."""

    @abc.abstractmethod
    def build(self, features: int, actions: int, key: Key) -> Placer:
        """Return a freshly initialised placer."""

    def losses(
        self, support: Support, mean: Float[Array, ""], variance: Float[Array, ""], unit: Unit
    ) -> Float[Array, ""]:
        """Return what the placer minimises, from the moments of a transition's target."""
        return jnp.float32(0)

    @abc.abstractmethod
    def follow(self, unit: Unit, means: Float[Array, "batch"]) -> Unit:
        """Return the unit after an update, from the means of its targets."""
