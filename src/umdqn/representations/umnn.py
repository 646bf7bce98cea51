"""The three representations of the paper, all on one network class (section 4)."""

from __future__ import annotations

import abc
import dataclasses
from typing import Annotated, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from umdqn.laws import flow, quantile
from umdqn.laws.flow import FlowLaw, Link, Logistic, Normal
from umdqn.laws.quantile import QuantileLaw
from umdqn.laws.support import Support
from umdqn.laws.trained import TrainedLaw, View
from umdqn.networks.umnn import Umnn
from umdqn.numerics.table import MonotoneTable
from umdqn.parts.ranges import Positive, Range, Widths
from umdqn.representations.representation import Head, Representation, misfit
from umdqn.specs import Key

# Beyond the support G continues with at least this slope (in units of half the support): mass that
# a network leaves outside stays at the bound. Nothing is compared out there: a law that could lie
# far beyond the support would be its own Bellman target and never come back.
_TAIL_SLOPE = 1e3

# Beyond an open support mass decays by e^10 within half its width.
_OPEN_TAIL_SLOPE = 10.0

# Smallest slope of a quantile function, in units of half the support.
_LEAST_RISE = 1e-5

# Cells of the laws that people look at: CDFs of sharply trained networks are right within 1e-4.
_VIEW_INTERVALS = 800


class _UmnnHead(Head):
    umnn: eqx.AbstractVar[Umnn]

    def laws(self, features: Float[Array, "features"], support: Support) -> TrainedLaw:
        tables = self.umnn.tables(features)
        return self._view(tables, support.of_shape(tables.left.shape))

    def law(
        self, features: Float[Array, "features"], action: Int[Array, ""], support: Support
    ) -> TrainedLaw:
        return self._view(self.umnn.table(features, action), support)

    def own_loss(
        self,
        features: Float[Array, "features"],
        action: Int[Array, ""],
        law: TrainedLaw,
        support: Support,
    ) -> Float[Array, ""]:
        """Keeps the shape in the middle of its table, where it is resolved."""
        return jnp.float32(0) if support.moments is None else misfit(*self._moments(law), support)

    @abc.abstractmethod
    def _view(self, table: MonotoneTable, support: Support) -> TrainedLaw: ...

    @abc.abstractmethod
    def _moments(self, law: TrainedLaw) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Mean and variance of the shape of a law."""


class _FlowHead(_UmnnHead):
    umnn: Umnn
    link: Link = eqx.field(static=True)

    def _moments(self, law: TrainedLaw) -> tuple[Float[Array, ""], Float[Array, ""]]:
        assert isinstance(law, FlowLaw)
        return flow.shape_moments(law.table, law.link)

    def _view(self, table: MonotoneTable, support: Support) -> TrainedLaw:
        least = _OPEN_TAIL_SLOPE if support.open else _TAIL_SLOPE
        ends = (jnp.maximum(end, least) for end in (table.left, table.right))
        table = MonotoneTable(table.heights, table.slopes, *ends)
        return FlowLaw.of(table, support, self.link)


class _QuantileHead(_UmnnHead):
    umnn: Umnn

    def _moments(self, law: TrainedLaw) -> tuple[Float[Array, ""], Float[Array, ""]]:
        assert isinstance(law, QuantileLaw)
        return quantile.shape_moments(law.table)

    def _view(self, table: MonotoneTable, support: Support) -> TrainedLaw:
        # Rises at least a little everywhere: densities and their gradients stay finite.
        nodes = np.linspace(-1, 1, table.heights.shape[-1], dtype=np.float32)
        rising = MonotoneTable(
            table.heights + _LEAST_RISE * nodes,
            *(slope + _LEAST_RISE for slope in (table.slopes, table.left, table.right)),
        )
        return QuantileLaw.of(rising, support)


@dataclasses.dataclass(frozen=True)
class _UmnnRepresentation(Representation, abc.ABC):
    gives: ClassVar[frozenset[View]] = frozenset({"density", "cdf", "quantile", "mean"})
    bounded: ClassVar[bool] = True

    hidden: Widths = (128,)
    """Widths of the integrand's hidden layers; one layer takes the O(H + M) path."""
    intervals: Annotated[int, Range(least=2, most=65_536, multiple_of=2)] = 200
    """Cells of the cumulative quadrature over the support, in training."""
    point_scale: Positive = 4.0
    """Initial weights of the return (or fraction), relative to Xavier: larger starts sharper."""
    steepness: Positive = 8.0
    """Initial slope of G: 8 lets a law start well inside its support."""

    def refined(self) -> Representation:
        return dataclasses.replace(self, intervals=max(self.intervals, _VIEW_INTERVALS))

    def _umnn(self, features: int, actions: int, key: Key) -> Umnn:
        return Umnn(
            features, actions, self.hidden, self.intervals, self.point_scale, self.steepness, key
        )


@dataclasses.dataclass(frozen=True)
class UmnnPdf(_UmnnRepresentation):
    """Density of a normalizing flow with a standard normal latent: `p(z) = phi(G(z)) G'(z)`."""

    def build(self, features: int, actions: int, key: Key) -> Head:
        return _FlowHead(self._umnn(features, actions, key), Normal())


@dataclasses.dataclass(frozen=True)
class UmnnCdf(_UmnnRepresentation):
    """`F(z) = sigmoid(G(z))`."""

    def build(self, features: int, actions: int, key: Key) -> Head:
        return _FlowHead(self._umnn(features, actions, key), Logistic())


@dataclasses.dataclass(frozen=True)
class UmnnQf(_UmnnRepresentation):
    """`F^{-1}(tau) = G(tau)`."""

    # Its CDF is an inverse and has no gradient where the law has no mass: no metric trains it.
    gives: ClassVar[frozenset[View]] = frozenset({"density", "quantile", "mean"})

    steepness: Positive = 0.25
    """Initial slope of G: 0.25 lets the quantiles start within a quarter of the support."""

    def build(self, features: int, actions: int, key: Key) -> Head:
        return _QuantileHead(self._umnn(features, actions, key))
