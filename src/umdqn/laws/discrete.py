"""The representations of DQN, CDQN, QR-DQN and its non-crossing version: one output layer.

Only the categorical one knows the domain; the others give returns as they are.
"""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from umdqn.laws.atoms import (
    Atoms,
    Categorical,
    EvenQuantileAtoms,
    OrderedQuantileAtoms,
    midpoints,
    support,
)
from umdqn.laws.law import Law
from umdqn.laws.representation import Head, Representation, View
from umdqn.networks import Linear
from umdqn.types import Domain, Key, check_count


class _Outputs(eqx.Module):
    """`count` numbers for every action, after the ReLU that the torso leaves out."""

    layer: Linear
    actions: int = eqx.field(static=True)

    def __init__(self, features: int, actions: int, count: int, key: Key):
        self.layer = Linear(features, actions * count, key)
        self.actions = actions

    def __call__(self, features: Float[Array, "features"]) -> Float[Array, "actions count"]:
        return self.layer(jax.nn.relu(features)).reshape(self.actions, -1)


class _OutputHead(Head):
    outputs: _Outputs


class _ExpectationHead(_OutputHead):
    def laws(self, features: Float[Array, "features"]) -> Law:
        means = self.outputs(features)
        return Atoms(means, jnp.ones_like(means))


class _CategoricalHead(_OutputHead):
    domain: Domain = eqx.field(static=True)

    def laws(self, features: Float[Array, "features"]) -> Law:
        log_weights = jax.nn.log_softmax(self.outputs(features))
        positions = jnp.broadcast_to(support(self.domain, log_weights.shape[-1]), log_weights.shape)
        return Categorical(positions, jnp.exp(log_weights), log_weights)


class _QuantilesHead(_OutputHead):
    def laws(self, features: Float[Array, "features"]) -> Law:
        return _even(EvenQuantileAtoms, self.outputs(features))


class _NonCrossingHead(_OutputHead):
    quantiles: int = eqx.field(static=True)

    def laws(self, features: Float[Array, "features"]) -> Law:
        logits, offset, scale = jnp.split(
            self.outputs(features), [self.quantiles, self.quantiles + 1], axis=-1
        )
        rising = jnp.cumsum(jax.nn.softmax(logits), axis=-1)
        return _even(OrderedQuantileAtoms, offset + jax.nn.softplus(scale) * rising)


def _even(kind: type[EvenQuantileAtoms], positions: Float[Array, "actions count"]) -> Atoms:
    """Atoms of equal weight at the middle fractions of equal cells."""
    count = positions.shape[-1]
    fractions = jnp.broadcast_to(midpoints(count), positions.shape)
    return kind(positions, jnp.full(positions.shape, 1.0 / count), fractions)


@dataclasses.dataclass(frozen=True)
class Expectation(Representation):
    """The mean alone: a law with all mass there."""

    gives: ClassVar[frozenset[View]] = frozenset({"mean"})

    def build(self, features: int, actions: int, domain: Domain, key: Key) -> Head:
        return _ExpectationHead(_Outputs(features, actions, 1, key))


@dataclasses.dataclass(frozen=True)
class CategoricalPdf(Representation):
    """Masses on a fixed, evenly spaced support over the domain."""

    gives: ClassVar[frozenset[View]] = frozenset({"masses", "cdf", "mean"})

    atoms: int = 51

    def __post_init__(self) -> None:
        check_count("atoms", self.atoms, least=2)

    def build(self, features: int, actions: int, domain: Domain, key: Key) -> Head:
        return _CategoricalHead(_Outputs(features, actions, self.atoms, key), domain)


@dataclasses.dataclass(frozen=True)
class Quantiles(Representation):
    """Quantiles at fixed fractions, the middles of equal cells."""

    gives: ClassVar[frozenset[View]] = frozenset({"quantile", "mean"})

    quantiles: int = 200

    def __post_init__(self) -> None:
        check_count("quantiles", self.quantiles)

    def build(self, features: int, actions: int, domain: Domain, key: Key) -> Head:
        return _QuantilesHead(_Outputs(features, actions, self.quantiles, key))


@dataclasses.dataclass(frozen=True)
class NonCrossingQuantiles(Quantiles):
    """Quantiles that rise by a softmax's shares, so that they cannot cross (Zhou et al., 2020)."""

    def build(self, features: int, actions: int, domain: Domain, key: Key) -> Head:
        return _NonCrossingHead(
            _Outputs(features, actions, self.quantiles + 2, key), self.quantiles
        )
