"""What learning changes, and what an update tells."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Array, Bool, Float, Int, PyTree

from umdqn.supports.support_rule import Unit


class Learned(NamedTuple):
    """What laws are made from."""

    params: PyTree
    unit: Unit


class AgentState(NamedTuple):
    """Everything that learning changes."""

    params: PyTree
    target_params: PyTree
    unit: Unit
    optimiser: PyTree
    updates: Int[Array, ""]

    @property
    def learned(self) -> Learned:
        """What laws are made from."""
        return Learned(self.params, self.unit)


class Outcome(NamedTuple):
    """What an update tells."""

    loss: Float[Array, ""]
    losses: Float[Array, "batch"]
    """Loss of every transition, unweighted."""
    clipped: Bool[Array, ""]
    """Whether the optimiser found the gradient too large."""
    edge_mass: Float[Array, ""]
    """Mass of the predicted laws at the edges of their supports; 0 for laws without edges."""
