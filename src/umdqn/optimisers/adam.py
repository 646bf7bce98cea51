"""Adam, as the paper uses it."""

from __future__ import annotations

import dataclasses
from typing import Literal

import optax
from jaxtyping import Array, Bool, PyTree

from umdqn.errors import check_number
from umdqn.optimisers.optimiser import Optimiser


@dataclasses.dataclass(frozen=True)
class Adam(Optimiser):
    """Adam, after clipping the gradient's global norm."""

    learning_rate: float = 1e-4
    """Size of a step."""
    epsilon: float = 1e-5
    """Added to the root of the second moment."""
    clip: float = 1.0
    """Largest global norm of a gradient."""
    schedule: Literal["constant", "cosine"] = "constant"
    """`cosine` lets the learning rate fall to 0 over the run."""

    def __post_init__(self) -> None:
        check_number("learning_rate", self.learning_rate, above=0)
        check_number("epsilon", self.epsilon, above=0)
        check_number("clip", self.clip, above=0)

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
