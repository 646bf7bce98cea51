"""Adam, as the paper uses it."""

from __future__ import annotations

import dataclasses
from typing import Literal

import optax
from jaxtyping import Array, Bool, PyTree

from umdqn.optimisers.optimiser import Optimiser
from umdqn.parts.ranges import Positive


@dataclasses.dataclass(frozen=True)
class Adam(Optimiser):
    """Adam, after clipping the gradient's global norm."""

    learning_rate: Positive = 1e-4
    """Size of a step."""
    epsilon: Positive = 1e-5
    """Added to the root of the second moment."""
    clip: Positive = 1.0
    """Largest global norm of a gradient."""
    schedule: Literal["constant", "cosine"] = "constant"
    """`cosine` lets the learning rate fall to 0 over the run."""

    def clips(self, gradient: PyTree) -> Bool[Array, ""]:
        return optax.tree.norm(gradient) > self.clip

    @property
    def depends_on_length(self) -> bool:
        return self.schedule != "constant"

    def build(self, updates: int) -> optax.GradientTransformation:
        rates = {
            "constant": lambda: self.learning_rate,
            "cosine": lambda: optax.cosine_decay_schedule(self.learning_rate, max(updates, 1)),
        }
        adam = optax.adam(rates[self.schedule](), eps=self.epsilon)
        return optax.chain(optax.clip_by_global_norm(self.clip), adam)
