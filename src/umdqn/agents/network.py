"""The network of an agent: torso and head."""

from __future__ import annotations

import equinox as eqx
from jaxtyping import Array, Float, Int, Shaped

from umdqn.laws.support import Support
from umdqn.laws.trained import TrainedLaw
from umdqn.networks.torso import Embedding
from umdqn.representations.representation import Head


class Network(eqx.Module):
    """From one observation to laws."""

    torso: Embedding
    head: Head

    def features(self, observation: Shaped[Array, "..."]) -> Float[Array, "features"]:
        """Return the embedding of an observation."""
        return self.torso(observation)

    def laws(self, observation: Shaped[Array, "..."], support: Support) -> TrainedLaw:
        """Return the laws of all actions, on a leading axis."""
        return self.head.laws(self.torso(observation), support)

    def law(
        self, observation: Shaped[Array, "..."], action: Int[Array, ""], support: Support
    ) -> TrainedLaw:
        """Return the law of one action."""
        return self.head.law(self.torso(observation), action, support)
