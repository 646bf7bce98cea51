"""What a rule for supports is: where the law of each state and action is resolved."""

from __future__ import annotations

import abc
import dataclasses
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from umdqn.laws.support import Support
from umdqn.parts.part import Part
from umdqn.specs import Domain, Key


class Unit(NamedTuple):
    """What is common to all states: where returns lie, how far apart, and how far they spread."""

    centre: Float[Array, ""]
    scale: Float[Array, ""]
    """Spread of the means of laws over states."""
    deviation: Float[Array, ""]
    """Typical standard deviation of a law."""
    seen: Float[Array, ""]
    """Number of updates that the averages below are made of."""
    mean: Float[Array, ""]
    variance: Float[Array, ""]
    """Of the means of targets."""
    error: Float[Array, ""]
    """Squared difference of the means of target and prediction."""
    kept: Float[Array, ""]
    """Squared discount of a transition, 0 where the return ends."""
    claimed: Float[Array, ""]
    """Variance of a law minus the discounted variance of the next one."""

    @property
    def informed(self) -> Bool[Array, ""]:
        """Whether a return other than 0 was ever seen: before that, units mean nothing."""
        return (self.mean != 0) | (self.variance > 0)

    @property
    def credible(self) -> Float[Array, ""]:
        """Share of the next law's variance that targets count.

        At the solution, what laws claim beyond the next ones is what errors explain:
        `E[std^2 - discount^2 std'^2] = E[error^2]`, over any distribution of transitions. Laws that
        are all too wide would shrink by `discount^2` with each backup only, while noise in the
        learned deviations widens them. This share removes at once what is not explained.
        """
        excessive = self.claimed > self.error
        return jnp.where(excessive, self.error / jnp.where(excessive, self.claimed, 1.0), 1.0)

    @classmethod
    def of(cls, centre: float, scale: float) -> Unit:
        """Return a unit before any target was seen."""
        numbers = (centre, scale, scale, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        return cls(*(jnp.float32(number) for number in numbers))


class TargetMoments(NamedTuple):
    """What placing laws needs of the targets of a batch, or of one transition."""

    mean: Float[Array, "*batch"]
    variance: Float[Array, "*batch"]
    """That of the next law, discounted."""
    error: Float[Array, "*batch"]
    """The mean minus the predicted one."""
    discount: Float[Array, "*batch"]
    claimed: Float[Array, "*batch"]
    """The variance of the predicted law."""


class Placer(eqx.Module):
    """Gives the supports of all actions, from the embedding of a state."""

    @abc.abstractmethod
    def __call__(self, features: Float[Array, "features"], unit: Unit) -> Support:
        """Return the supports, on a leading axis of actions."""

    @abc.abstractmethod
    def rescaled(self, before: Unit, after: Unit) -> Placer:
        """Return the placer that gives the same places with another unit."""


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

    def loss(self, support: Support, target: TargetMoments, unit: Unit) -> Float[Array, ""]:
        """Return what the placer minimises, for one transition."""
        return jnp.float32(0)

    @abc.abstractmethod
    def follow(self, unit: Unit, targets: TargetMoments) -> Unit:
        """Return the unit after an update, from the targets of its batch."""
