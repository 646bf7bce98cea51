"""What laws share whose shape is an increasing function in a table, placed on a support."""

from __future__ import annotations

import abc

import equinox as eqx
from jaxtyping import Array, Float

from umdqn.laws.support import Support
from umdqn.laws.trained import TrainedLaw
from umdqn.numerics.table import MonotoneTable


class TabledLaw(TrainedLaw):
    """A law with a shape on [-1, 1]; on an open support its moments are those of the support."""

    table: eqx.AbstractVar[MonotoneTable]
    support: eqx.AbstractVar[Support]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.table.left.shape

    @abc.abstractmethod
    def _shape_mean(self) -> Float[Array, "*laws"]:
        """Return the mean of the shape, in units of the support."""

    @property
    def mean(self) -> Float[Array, "*laws"]:
        if self.support.moments is not None:
            return self.support.moments.mean
        return self.support.from_unit(self._shape_mean())

    def _variance(self) -> Float[Array, ""]:
        if self.support.moments is not None:
            return self.support.moments.std**2
        return super()._variance()

    @property
    def edge_mass(self) -> Float[Array, "*laws"] | None:
        """Mass at or beyond the bounds of the support, its outermost hundredths included."""
        # Laws continue beyond an open support: no mass piles up at its bounds.
        if self.support.open:
            return None
        return self._each(lambda law: law._mass_at_edges(law.support.low, law.support.high))  # type: ignore[attr-defined]
