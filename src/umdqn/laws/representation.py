"""What a representation is: hyperparameters that build a head, and a head that gives laws."""

from __future__ import annotations

import abc
import dataclasses
from typing import ClassVar, Literal

import equinox as eqx
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree

from umdqn.laws.law import Law
from umdqn.types import Domain, Key

View = Literal["mean", "density", "masses", "cdf", "quantile"]
"""What a network may parameterise of a law, so that a metric can train it."""


class Head(eqx.Module):
    """From an embedding to the laws of all actions."""

    @abc.abstractmethod
    def laws(self, features: Float[Array, "features"]) -> Law:
        """The laws of all actions, on a leading axis."""

    def law(self, features: Float[Array, "features"], action: Int[Array, ""]) -> Law:
        """The law of one action."""
        return self.laws(features)[action]

    def own_loss(
        self, features: Float[Array, "features"], action: Int[Array, ""], law: Law
    ) -> Float[Array, ""]:
        """What the head minimises besides the metric, given the law that it predicts."""
        return jnp.float32(0)


@dataclasses.dataclass(frozen=True)
class Representation(abc.ABC):
    """The hyperparameters of a head."""

    gives: ClassVar[frozenset[View]]
    """The views of its laws that are differentiable in the parameters."""

    @abc.abstractmethod
    def build(self, features: int, actions: int, domain: Domain, key: Key) -> Head:
        """A freshly initialised head."""

    def refined(self) -> Representation:
        """The same representation, evaluated as finely as people who look at laws expect.

        Networks of the one are networks of the other: only the numerics differ.
        """
        return self

    def own_optimiser(self) -> optax.GradientTransformation | None:
        """The optimiser of `own_parameters`, if they are not trained with all others."""
        return None

    def own_parameters(self, head: Head) -> PyTree:
        """The part of a head that `own_optimiser` trains."""
        return None
