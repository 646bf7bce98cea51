"""Where a law is resolved: an interval of returns, held as data."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from umdqn.specs import Domain

# Smallest standard deviation of a shape, in units of half its support.
_LEAST_SPREAD = 1e-4


class Moments(NamedTuple):
    """Mean and standard deviation of laws."""

    mean: Float[Array, "*laws"]
    std: Float[Array, "*laws"]


class Support(eqx.Module):
    """An interval of returns; networks work on [-1, 1].

    It is data and not a constant of the program: it can move without compiling anything anew.
    """

    centre: Float[Array, "*laws"]
    half_width: Float[Array, "*laws"]
    moments: Moments | None = None
    """The law's mean and standard deviation where these are learned; None for a fixed domain.

    Such a support is open: it moves with them, and laws have mass outside of it."""

    @classmethod
    def of(cls, domain: Domain) -> Support:
        """Return the support that spans a domain."""
        centre, half_width = (domain.low + domain.high) / 2, (domain.high - domain.low) / 2
        return cls(jnp.float32(centre), jnp.float32(half_width))

    def of_shape(self, shape: tuple[int, ...]) -> Support:
        """Repeat one support along leading axes."""
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, shape), self)

    def __getitem__(self, index: Any) -> Support:
        """Return the support at an index of the first axis."""
        return jax.tree.map(lambda leaf: leaf[index], self)

    def matched(self, mean: Float[Array, "*laws"], variance: Float[Array, "*laws"]) -> Support:
        """Return the support that gives a shape the learned mean and standard deviation.

        `mean` and `variance` are those of the shape on [-1, 1].
        """
        if self.moments is None:
            return self
        half_width = self.moments.std / spread(variance)
        return Support(self.moments.mean - half_width * mean, half_width, self.moments)

    @property
    def open(self) -> bool:
        """Whether it follows what is learned."""
        return self.moments is not None

    @property
    def unit(self) -> Float[Array, "*laws"]:
        """What losses and thresholds count in: standard deviations if it is open, else returns."""
        return jnp.ones_like(self.half_width) if self.moments is None else self.moments.std

    @property
    def low(self) -> Float[Array, "*laws"]:
        return self.centre - self.half_width

    @property
    def high(self) -> Float[Array, "*laws"]:
        return self.centre + self.half_width

    @property
    def width(self) -> Float[Array, "*laws"]:
        return 2 * self.half_width

    def to_unit(self, z: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        """Map the support onto [-1, 1]."""
        return (jnp.asarray(z) - self.centre) / self.half_width

    def from_unit(self, x: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        """Map [-1, 1] onto the support."""
        return self.centre + self.half_width * jnp.asarray(x)


def spread(variance: Float[Array, "*laws"]) -> Float[Array, "*laws"]:
    """Return the standard deviation of a shape, kept off zero."""
    return jnp.sqrt(jnp.maximum(variance, 0.0) + _LEAST_SPREAD**2)
