"""Weighted points that stand for a law in sample-based metrics."""

from __future__ import annotations

import equinox as eqx
import jax
from jaxtyping import Array, Float

from umdqn.numerics.sorting import sort_data


class Particles(eqx.Module):
    """Positions with weights that sum to 1."""

    positions: Float[Array, "particles"]
    weights: Float[Array, "particles"]
    ordered: bool = eqx.field(static=True, default=False)
    """Whether positions are increasing."""
    even: bool = eqx.field(static=True, default=False)
    """Whether all weights are equal."""

    def sorted(self) -> Particles:
        """Return the particles in increasing order, as data: without a gradient."""
        if self.ordered:
            return self
        if self.even:
            return Particles(sort_data(self.positions), self.weights, True, True)
        positions, weights = jax.lax.sort((self.positions, self.weights))
        return Particles(positions, weights, True, False)

    def affine(self, shift: Float[Array, ""], scale: Float[Array, ""]) -> Particles:
        """Move every particle to `shift + scale * position`, for `scale >= 0`."""
        return Particles(shift + scale * self.positions, self.weights, self.ordered, self.even)
