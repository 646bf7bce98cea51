"""What memories hold and hand out."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Float, Int, Shaped

from umdqn.specs import AnyArray


class Transition(NamedTuple):
    """One experience. `discount` is gamma, or 0 where the episode terminated (not truncated)."""

    observation: Shaped[AnyArray, "..."]
    action: Int[AnyArray, "..."]
    reward: Float[AnyArray, "..."]
    discount: Float[AnyArray, "..."]
    next_observation: Shaped[AnyArray, "..."]


class Batch(NamedTuple):
    """Transitions to learn from."""

    transition: Transition
    index: Int[AnyArray, "batch"]
    """Where they are in the memory, for `Memory.update`."""
    weight: Float[AnyArray, "batch"]
    """How much each counts in the loss."""
