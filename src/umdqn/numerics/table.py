"""An increasing function on the real line, held as a table: how a UMNN is evaluated."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from umdqn.numerics.quadrature import filled


def unit_nodes(intervals: int) -> Float[Array, "nodes"]:
    """Evenly spaced nodes from -1, of which number `intervals` is 1.

    A few lie beyond 1: they fill the last block of a running sum, which padding would slow down.
    """
    count = filled(intervals + 1)
    return jnp.asarray(-1.0 + (2.0 / intervals) * np.arange(count), jnp.float32)


class MonotoneTable(eqx.Module):
    """A strictly increasing function: piecewise quadratic on [-1, 1], linear beyond.

    Its derivative is the linear interpolation of `slopes` on evenly spaced nodes, so the function
    is the exact integral of that interpolation, its derivative is exact everywhere, and its inverse
    has a closed form. Being positive at the nodes makes it positive in between: monotone by
    construction, whatever the network says. `left` and `right` are the slopes beyond the nodes.
    """

    heights: Float[Array, "*batch nodes"]
    slopes: Float[Array, "*batch nodes"]
    left: Float[Array, "*batch"]
    right: Float[Array, "*batch"]

    @property
    def intervals(self) -> int:
        return self.heights.shape[-1] - 1

    @property
    def spacing(self) -> float:
        return 2.0 / self.intervals

    def _locate(
        self, x: Float[Array, "*points"]
    ) -> tuple[Int[Array, "*points"], Float[Array, "*points"]]:
        """The cell of each point and its offset from the cell's left node."""
        inside = jnp.clip(x, -1.0, 1.0)
        scaled = (inside + 1.0) * (self.intervals / 2)
        cell = jnp.clip(jnp.floor(scaled).astype(jnp.int32), 0, self.intervals - 1)
        return cell, (scaled - cell) * self.spacing

    def __call__(self, x: Float[Array, "*points"]) -> Float[Array, "*points"]:
        """Value at any real x."""
        cell, offset = self._locate(x)
        start, stop = self.slopes[cell], self.slopes[cell + 1]
        inside = self.heights[cell] + offset * (
            start + (stop - start) * offset / (2 * self.spacing)
        )
        below, above = jnp.minimum(x + 1.0, 0.0), jnp.maximum(x - 1.0, 0.0)
        return inside + self.left * below + self.right * above

    def slope(self, x: Float[Array, "*points"]) -> Float[Array, "*points"]:
        """Derivative at any real x."""
        cell, offset = self._locate(x)
        start, stop = self.slopes[cell], self.slopes[cell + 1]
        inside = start + (stop - start) * offset / self.spacing
        return jnp.where(x < -1.0, self.left, jnp.where(x > 1.0, self.right, inside))

    def inverse(self, y: Float[Array, "*points"]) -> Float[Array, "*points"]:
        """The x at which the function takes the value y, in closed form, on the whole real line."""
        cell = jnp.clip(jnp.searchsorted(self.heights, y, side="right") - 1, 0, self.intervals - 1)
        start, stop = self.slopes[cell], self.slopes[cell + 1]
        rise = jnp.clip(y - self.heights[cell], 0.0, None)
        # The root of a quadratic in the form that does not cancel when the curvature is small.
        discriminant = jnp.maximum(start**2 + 2 * (stop - start) / self.spacing * rise, 0.0)
        root = jnp.sqrt(jnp.where(discriminant > 0, discriminant, 1.0))
        offset = 2 * rise / (start + jnp.where(discriminant > 0, root, 0.0))
        inside = -1.0 + cell * self.spacing + jnp.minimum(offset, self.spacing)
        below = -1.0 + (y - self.heights[0]) / self.left
        above = 1.0 + (y - self.heights[-1]) / self.right
        return jnp.where(y < self.heights[0], below, jnp.where(y > self.heights[-1], above, inside))

    def integral(self) -> Float[Array, "*batch"]:
        """Integral over [-1, 1], exact: trapezoids corrected for the curvature of each cell."""
        ends = (self.heights[..., 0] + self.heights[..., -1]) / 2
        trapezoids = self.spacing * (jnp.sum(self.heights, axis=-1) - ends)
        return trapezoids - self.spacing**2 / 12 * (self.slopes[..., -1] - self.slopes[..., 0])
