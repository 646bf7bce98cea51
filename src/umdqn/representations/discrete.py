"""The representations of DQN, CDQN, QR-DQN and its non-crossing version: one output layer.

All but the categorical one give numbers without bounds, in units of the support.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Annotated, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from umdqn.laws.atoms import Atoms, CategoricalAtoms, QuantileAtoms, midpoints
from umdqn.laws.support import Support
from umdqn.laws.trained import TrainedLaw, View
from umdqn.networks.dense import Linear
from umdqn.parts.ranges import Count, Range
from umdqn.representations.representation import Head, Representation, misfit
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
        means = support.from_unit(self.outputs(features)[:, 0])
        if support.moments is not None:
            means = jnp.broadcast_to(support.moments.mean, means.shape)
        return Atoms(means[:, None], jnp.ones((means.shape[0], 1)))


class _CategoricalHead(Head):
    outputs: _Outputs

    def laws(self, features: Float[Array, "features"], support: Support) -> TrainedLaw:
        log_masses = jax.nn.log_softmax(self.outputs(features))
        masses = jnp.exp(log_masses)
        nodes = jnp.broadcast_to(jnp.linspace(-1.0, 1.0, masses.shape[-1]), masses.shape)
        return CategoricalAtoms(placed(nodes, support, masses), masses, log_masses)

    def own_loss(
        self,
        features: Float[Array, "features"],
        action: Int[Array, ""],
        law: TrainedLaw,
        support: Support,
    ) -> Float[Array, ""]:
        """Keeps the shape in the middle of its atoms."""
        if support.moments is None:
            return jnp.float32(0)
        assert isinstance(law, CategoricalAtoms)
        nodes = jnp.linspace(-1.0, 1.0, law.weights.shape[-1])
        return misfit(*_moments(nodes, law.weights), support)


class _QuantilesHead(Head):
    outputs: _Outputs

    def laws(self, features: Float[Array, "features"], support: Support) -> TrainedLaw:
        return _even(self.outputs(features), support, ordered=False)


class _NonCrossingHead(Head):
    outputs: _Outputs
    quantiles: int = eqx.field(static=True)

    def laws(self, features: Float[Array, "features"], support: Support) -> TrainedLaw:
        logits, offset, scale = jnp.split(
            self.outputs(features), [self.quantiles, self.quantiles + 1], axis=-1
        )
        rising = jnp.cumsum(jax.nn.softmax(logits), axis=-1)
        positions = offset + jax.nn.softplus(scale) * rising
        return _even(positions, support, ordered=True)


def placed(
    outputs: Float[Array, "actions count"],
    support: Support,
    weights: Float[Array, "actions count"],
) -> Float[Array, "actions count"]:
    """Return atoms as returns, from numbers in units of the support; an open one sets moments."""
    support = support.of_shape((outputs.shape[0],))
    if support.open:
        support = support.matched(*_moments(outputs, weights))
    return support.centre[:, None] + support.half_width[:, None] * outputs


def _moments(
    positions: Float[Array, "*actions count"], weights: Float[Array, "*actions count"]
) -> tuple[Float[Array, "*actions"], Float[Array, "*actions"]]:
    """Mean and variance of atoms."""
    mean = jnp.sum(weights * positions, axis=-1)
    return mean, jnp.sum(weights * (positions - mean[..., None]) ** 2, axis=-1)


def _even(outputs: Float[Array, "actions count"], support: Support, ordered: bool) -> QuantileAtoms:
    """Atoms of equal weight at the middle fractions of equal cells."""
    count = outputs.shape[-1]
    fractions = jnp.broadcast_to(midpoints(count), outputs.shape)
    weights = jnp.full(outputs.shape, 1.0 / count)
    positions = placed(outputs, support, weights)
    return QuantileAtoms(positions, weights, fractions, ordered, even=True)


@dataclasses.dataclass(frozen=True)
class Expectation(Representation):
    """The mean alone: a law with all mass there."""

    gives: ClassVar[frozenset[View]] = frozenset({"mean"})
    shaped: ClassVar[bool] = False

    def build(self, features: int, actions: int, key: Key) -> Head:
        return _ExpectationHead(_Outputs(features, actions, 1, key))


@dataclasses.dataclass(frozen=True)
class Categorical(Representation):
    """Masses on evenly spaced atoms that span the support."""

    gives: ClassVar[frozenset[View]] = frozenset({"masses", "cdf", "mean"})
    bounded: ClassVar[bool] = True

    atoms: Annotated[int, Range(least=2)] = 51
    """Number of atoms."""

    def build(self, features: int, actions: int, key: Key) -> Head:
        return _CategoricalHead(_Outputs(features, actions, self.atoms, key))


@dataclasses.dataclass(frozen=True)
class _FixedFractions(Representation, abc.ABC):
    gives: ClassVar[frozenset[View]] = frozenset({"quantile", "mean"})

    quantiles: Count = 200
    """Number of quantiles."""


@dataclasses.dataclass(frozen=True)
class Quantiles(_FixedFractions):
    """Quantiles at fixed fractions, the middles of equal cells."""

    def build(self, features: int, actions: int, key: Key) -> Head:
        return _QuantilesHead(_Outputs(features, actions, self.quantiles, key))


@dataclasses.dataclass(frozen=True)
class NonCrossingQuantiles(_FixedFractions):
    """Quantiles that rise by a softmax's shares, so that they cannot cross (Zhou et al., 2020)."""

    large: ClassVar[bool] = True

    def build(self, features: int, actions: int, key: Key) -> Head:
        outputs = _Outputs(features, actions, self.quantiles + 2, key)
        return _NonCrossingHead(outputs, self.quantiles)
