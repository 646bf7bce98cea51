"""What a representation is: settings that build a head, and a head that gives laws."""

from __future__ import annotations

import abc
import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree

from umdqn.laws.support import Support, spread
from umdqn.laws.trained import TrainedLaw, View
from umdqn.parts.part import Part
from umdqn.specs import Key

# How much that counts, against the metric.
_MISFIT = 0.1


class Head(eqx.Module):
    """A network from an embedding to the laws of all actions; written for one sample."""

    @abc.abstractmethod
    def laws(self, features: Float[Array, "features"], support: Support) -> TrainedLaw:
        """Return the laws of all actions, on a leading axis."""

    def law(
        self, features: Float[Array, "features"], action: Int[Array, ""], support: Support
    ) -> TrainedLaw:
        """Return the law of one action."""
        return self.laws(features, support)[action]  # type: ignore[return-value]

    def own_loss(
        self,
        features: Float[Array, "features"],
        action: Int[Array, ""],
        law: TrainedLaw,
        support: Support,
    ) -> Float[Array, ""]:
        """Return what the head minimises besides the metric, given the law that it predicts."""
        return jnp.float32(0)


def misfit(
    mean: Float[Array, ""], variance: Float[Array, ""], support: Support
) -> Float[Array, ""]:
    """Return how far a shape on [-1, 1] is from the middle of an open support, and from its scale.

    A support gives laws their moments whatever those of the shape are; this keeps the shape where
    it is resolved.
    """
    assert support.moments is not None
    reach = jax.lax.stop_gradient(support.half_width / support.moments.std)
    return _MISFIT * ((reach * mean) ** 2 + jnp.log(reach * spread(variance)) ** 2)


@dataclasses.dataclass(frozen=True)
class Representation(Part, abc.ABC):
    """How a network parameterises laws."""

    gives: ClassVar[frozenset[View]]
    """The views of its laws that are differentiable in the parameters."""
    bounded: ClassVar[bool] = False
    """Whether its laws are resolved on their support only."""
    shaped: ClassVar[bool] = True
    """Whether a metric trains the shape of laws, apart from where they lie; else their mean."""
    large: ClassVar[bool] = False
    """Whether updates have operations so large that sharing one among cores pays."""

    @classmethod
    def fault(cls) -> str | None:
        declared = getattr(cls, "gives", None)
        return None if declared else "it must declare `gives`, the views that can be trained"

    @abc.abstractmethod
    def build(self, features: int, actions: int, key: Key) -> Head:
        """Return a freshly initialised head for embeddings of `features` numbers."""

    def refined(self) -> Representation:
        """Return the same representation with laws as fine as viewers expect.

        Networks of the one are networks of the other: only the numerics differ.
        """
        return self

    def own_optimiser(self) -> optax.GradientTransformation | None:
        """Return the optimiser of `own_parameters`, if they are not trained with all others."""
        return None

    def own_parameters(self, head: Head) -> PyTree:
        """Return the part of a head that `own_optimiser` trains."""
        return None
