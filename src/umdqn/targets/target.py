"""What a target update is."""

from __future__ import annotations

import abc
import dataclasses

from jaxtyping import Array, Int, PyTree

from umdqn.parts.part import Part


@dataclasses.dataclass(frozen=True)
class TargetUpdate(Part, abc.ABC):
    """How the target network follows the network that is trained."""

    @abc.abstractmethod
    def update(
        self, params: PyTree, target_params: PyTree, updates: Int[Array, ""], update_every: int
    ) -> PyTree:
        """Return the target network's parameters after some number of updates.

        `update_every` is the number of environment steps between two updates.
        """
