"""Transitions that memories store, and batches that they return."""

from __future__ import annotations

from typing import Any, NamedTuple

from jaxtyping import Array, Float, Int, Shaped


class Transition(NamedTuple):
    """One experience. `discount` is gamma, or 0 where the return ends."""

    observation: Shaped[Array, "..."]
    action: Int[Array, "..."]
    reward: Float[Array, "..."]
    discount: Float[Array, "..."]
    next_observation: Shaped[Array, "..."]
    next_action: Int[Array, "..."] | None = None
    """Action of the fixed policy in the next observation; -1 or None without a fixed policy."""


def host_transition(*arrays: Any) -> Transition:
    """Return a transition of NumPy arrays, which compiled programs take as it is."""
    return Transition(*arrays)


class Batch(NamedTuple):
    """Transitions to learn from."""

    transition: Transition
    index: Int[Array, "batch"]  # type: ignore[assignment]
    """Where they are in the memory, for `Memory.update`."""
    weight: Float[Array, "batch"]
    """How much each counts in the loss."""
