"""What an optimiser is: settings that build an Optax gradient transformation."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any

import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, PyTree

from umdqn.parts import objects
from umdqn.parts.part import Part


@dataclasses.dataclass(frozen=True)
class Optimiser(Part, abc.ABC):
    """How gradients become updates of the parameters."""

    @abc.abstractmethod
    def build(self, updates: int) -> optax.GradientTransformation:
        """Return the gradient transformation for a run of `updates` updates."""

    def clips(self, gradient: PyTree) -> Bool[Array, ""]:
        """Return whether a gradient is too large and will be made smaller."""
        return jnp.bool_(False)

    @property
    def depends_on_length(self) -> bool:
        """Whether updates depend on the length of the run, as with a falling learning rate."""
        return False

    @classmethod
    def adopt(cls, value: Any, name: str | None = None) -> Part | None:
        """Accept an Optax gradient transformation."""
        from umdqn.optimisers.given import Given

        fits = isinstance(value, optax.GradientTransformation)
        return Given(name or objects.keep("optimiser", value)) if fits else None
