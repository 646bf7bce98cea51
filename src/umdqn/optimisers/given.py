"""An optimiser that the user made."""

from __future__ import annotations

import dataclasses

import optax

from umdqn.optimisers.optimiser import Optimiser
from umdqn.parts import objects


@dataclasses.dataclass(frozen=True)
class Given(Optimiser):
    """An Optax gradient transformation of the user's, passed in Python as `optimiser=optax...`."""

    transformation: str = ""
    """Name of the transformation; set when it is passed in Python."""

    def build(self, updates: int) -> optax.GradientTransformation:
        return objects.recall("optimiser", self.transformation)
