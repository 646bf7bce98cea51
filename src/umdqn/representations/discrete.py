"""The representations of DQN, CDQN, QR-DQN and its non-crossing version: one output layer.

All but the categorical one give numbers without bounds, in units of the support.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from umdqn.errors import check_count
from umdqn.laws.atoms import Atoms, CategoricalAtoms, QuantileAtoms, even_positions, midpoints
from umdqn.laws.support import Support
from umdqn.laws.trained import TrainedLaw, View
from umdqn.networks.dense import Linear
from umdqn.representations.representation import Head, Representation
from umdqn.specs import Key


class _Outputs(eqx.Module):
    """`count` numbers for every action, after the ReLU that the torso leaves out."""

    layer: Linear
    actions: int = eqx.field(static=True)

    def __init__(self, features: int, actions: int, count: int, key: Key):
        self.layer = Linear(features, actions * count, key)
        self.actions = actions

    def __call__(self, features: Float[Array, "features"]) -> Float[Array, "actions count"]:
        return self.layer(jax.nn.relu(features)).reshape(self.actions, -1)


class _ExpectationHead(Head):
    outputs: _Outputs

    def laws(self, features: Float[Array, "features"], support: Support) -> TrainedLaw:
        means = placed(self.outputs(features), support)
        return Atoms(means, jnp.ones_like(means))


class _CategoricalHead(Head):
    outputs: _Outputs

    def laws(self, features: Float[Array, "features"], support: Support) -> TrainedLaw:
        log_masses = jax.nn.log_softmax(self.outputs(features))
        actions, atoms = log_masses.shape
        positions = even_positions(support.of_shape((actions,)), atoms)
        return CategoricalAtoms(positions, jnp.exp(log_masses), log_masses)


class _QuantilesHead(Head):
    outputs: _Outputs

    def laws(self, features: Float[Array, "features"], support: Support) -> TrainedLaw:
        return _even(placed(self.outputs(features), support), ordered=False)


class _NonCrossingHead(Head):
    outputs: _Outputs
    quantiles: int = eqx.field(static=True)

    def laws(self, features: Float[Array, "features"], support: Support) -> TrainedLaw:
        logits, offset, scale = jnp.split(
            self.outputs(features), [self.quantiles, self.quantiles + 1], axis=-1
        )
        rising = jnp.cumsum(jax.nn.softmax(logits), axis=-1)
        positions = offset + jax.nn.softplus(scale) * rising
        return _even(placed(positions, support), ordered=True)


def placed(
    outputs: Float[Array, "actions count"], support: Support
) -> Float[Array, "actions count"]:
    """Returns, from numbers in units of the support."""
    support = support.of_shape((outputs.shape[0],))
    return support.centre[:, None] + support.half_width[:, None] * outputs


def _even(positions: Float[Array, "actions count"], ordered: bool) -> QuantileAtoms:
    """Atoms of equal weight at the middle fractions of equal cells."""
    count = positions.shape[-1]
    fractions = jnp.broadcast_to(midpoints(count), positions.shape)
    weights = jnp.full(positions.shape, 1.0 / count)
    return QuantileAtoms(positions, weights, fractions, ordered, even=True)


@dataclasses.dataclass(frozen=True)
class Expectation(Representation):
    """The mean alone: a law with all mass there."""

    gives: ClassVar[frozenset[View]] = frozenset({"mean"})

    def build(self, features: int, actions: int, key: Key) -> Head:
        return _ExpectationHead(_Outputs(features, actions, 1, key))


@dataclasses.dataclass(frozen=True)
class Categorical(Representation):
    """Masses on evenly spaced atoms that span the support."""

    gives: ClassVar[frozenset[View]] = frozenset({"masses", "cdf", "mean"})
    bounded: ClassVar[bool] = True

    atoms: int = 51
    """Number of atoms."""

    def __post_init__(self) -> None:
        check_count("atoms", self.atoms, least=2)

    def build(self, features: int, actions: int, key: Key) -> Head:
        return _CategoricalHead(_Outputs(features, actions, self.atoms, key))


@dataclasses.dataclass(frozen=True)
class _FixedFractions(Representation, abc.ABC):
    gives: ClassVar[frozenset[View]] = frozenset({"quantile", "mean"})

    quantiles: int = 200
    """Number of quantiles."""

    def __post_init__(self) -> None:
        check_count("quantiles", self.quantiles)


@dataclasses.dataclass(frozen=True)
class Quantiles(_FixedFractions):
    """Quantiles at fixed fractions, the middles of equal cells."""

    def build(self, features: int, actions: int, key: Key) -> Head:
        return _QuantilesHead(_Outputs(features, actions, self.quantiles, key))


@dataclasses.dataclass(frozen=True)
class NonCrossingQuantiles(_FixedFractions):
    """Quantiles that rise by a softmax's shares, so that they cannot cross (Zhou et al., 2020)."""

    def build(self, features: int, actions: int, key: Key) -> Head:
        outputs = _Outputs(features, actions, self.quantiles + 2, key)
        return _NonCrossingHead(outputs, self.quantiles)
