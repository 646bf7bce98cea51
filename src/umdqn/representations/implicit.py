"""The representation of IQN: a network of the quantile fraction."""

from __future__ import annotations

import abc
import dataclasses
from typing import ClassVar

import equinox as eqx
from jaxtyping import Array, Float

from umdqn.laws.implicit import ImplicitLaw
from umdqn.laws.support import Support
from umdqn.laws.trained import TrainedLaw, View
from umdqn.networks.implicit import ImplicitQuantileNetwork
from umdqn.parts.ranges import Count
from umdqn.representations.representation import Head, Representation
from umdqn.specs import Key

# Fractions behind the views of the laws that people look at.
_VIEW_FRACTIONS = 200


class _ImplicitHead(Head):
    network: ImplicitQuantileNetwork
    value_fractions: int = eqx.field(static=True)

    def laws(self, features: Float[Array, "features"], support: Support) -> TrainedLaw:
        weight, bias = self.network.output.weight.T, self.network.output.bias
        support = support.of_shape(bias.shape)
        return ImplicitLaw(self.network, features, weight, bias, support, self.value_fractions)


@dataclasses.dataclass(frozen=True)
class ImplicitRepresentation(Representation, abc.ABC):
    """A representation with a network of the fraction."""

    gives: ClassVar[frozenset[View]] = frozenset({"quantile", "mean"})
    large: ClassVar[bool] = True

    cosines: Count = 64
    """Size of the cosine embedding of a fraction."""
    hidden: Count = 128
    """Width of the layer after embedding and fraction have been multiplied."""

    def _build_network(self, features: int, actions: int, key: Key) -> ImplicitQuantileNetwork:
        return ImplicitQuantileNetwork(features, actions, self.cosines, self.hidden, key)


@dataclasses.dataclass(frozen=True)
class ImplicitQuantiles(ImplicitRepresentation):
    """The quantile at any fraction (Dabney et al., 2018)."""

    value_fractions: Count = 32
    """Fractions over which a greedy choice takes the expectation (K)."""

    def build(self, features: int, actions: int, key: Key) -> Head:
        return _ImplicitHead(self._build_network(features, actions, key), self.value_fractions)

    def refined(self) -> Representation:
        return dataclasses.replace(self, value_fractions=max(self.value_fractions, _VIEW_FRACTIONS))
