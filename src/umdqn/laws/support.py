"""Where a law is resolved: an interval of returns, held as data."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from umdqn.specs import Domain


class Support(eqx.Module):
    """An interval of returns; networks work on [-1, 1].

    It is data and not a constant of the program: it can move without compiling anything anew.
    """

    centre: Float[Array, "*laws"]
    half_width: Float[Array, "*laws"]
    open: bool = eqx.field(static=True, default=False)
    """Whether laws go on beyond it, as they do if it follows what is learned."""

    @classmethod
    def of(cls, domain: Domain) -> Support:
        """Return the support that spans a domain."""
        centre, half_width = (domain.low + domain.high) / 2, (domain.high - domain.low) / 2
        return cls(jnp.float32(centre), jnp.float32(half_width))

    def of_shape(self, shape: tuple[int, ...]) -> Support:
        """Repeat one support along leading axes."""
        centre, half_width = (jnp.broadcast_to(x, shape) for x in (self.centre, self.half_width))
        return Support(centre, half_width, self.open)

    def __getitem__(self, index: Any) -> Support:
        """Return the support at an index of the first axis."""
        return Support(self.centre[index], self.half_width[index], self.open)

    @property
    def unit(self) -> Float[Array, "*laws"]:
        """What losses and thresholds count in: half the support if it is open, else returns."""
        return self.half_width if self.open else jnp.ones_like(self.half_width)

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
