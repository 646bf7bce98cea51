"""A torso that the user made."""

from __future__ import annotations

import dataclasses

import equinox as eqx

from umdqn.errors import UmdqnError, one_line
from umdqn.networks.torso import Embedding, Torso
from umdqn.parts import objects
from umdqn.specs import Key, Observation


@dataclasses.dataclass(frozen=True)
class Given(Torso):
    """An Equinox module that a function of the user's makes."""

    make: str = ""
    """Name of the function `(observation, key) -> module`:
    `module:attribute`, or set when it is passed in Python."""

    def build(self, observation: Observation, key: Key) -> Embedding:
        make = objects.recall("torso", self.make)
        try:
            module = make(observation, key)
        except Exception as error:
            raise UmdqnError(f"torso {self.make!r} cannot be made: {one_line(error)}") from error
        if not (isinstance(module, eqx.Module) and callable(module)):
            raise UmdqnError(
                f"torso {self.make!r} made {type(module).__name__}, not a callable equinox.Module"
            )
        return module
