"""An optimiser that the user made."""

from __future__ import annotations

import dataclasses

import optax

from umdqn.errors import UmdqnError
from umdqn.optimisers.optimiser import Optimiser
from umdqn.parts import objects


@dataclasses.dataclass(frozen=True)
class Given(Optimiser):
    """An Optax gradient transformation of the user's."""

    transformation: str = ""
    """Name of the transformation: `module:attribute`, or set when it is passed in Python."""

    def build(self, updates: int) -> optax.GradientTransformation:
        found = objects.recall("optimiser", self.transformation)
        if not isinstance(found, optax.GradientTransformation):
            raise UmdqnError(
                f"optimiser {self.transformation!r} is {type(found).__name__}, not an Optax "
                "gradient transformation"
            )
        return found
