"""The network of an agent: torso, placer and head."""

from __future__ import annotations

import equinox as eqx
from jaxtyping import Array, Float, Int, Shaped

from umdqn.laws.support import Support
from umdqn.laws.trained import TrainedLaw
from umdqn.networks.torso import Embedding
from umdqn.representations.representation import Head
from umdqn.supports.support_rule import Placer, Unit


class Network(eqx.Module):
    """From one observation to laws."""

    torso: Embedding
    placer: Placer
    head: Head

    def features(self, observation: Shaped[Array, "..."]) -> Float[Array, "features"]:
        """Return the embedding of an observation."""
        return self.torso(observation)

    def supports(self, features: Float[Array, "features"], unit: Unit) -> Support:
        """Return the supports of all actions, on a leading axis."""
        return self.placer(features, unit)

    def laws(self, observation: Shaped[Array, "..."], unit: Unit) -> TrainedLaw:
        """Return the laws of all actions, on a leading axis."""
        features = self.torso(observation)
        return self.head.laws(features, self.placer(features, unit))

    def law(
        self, observation: Shaped[Array, "..."], action: Int[Array, ""], unit: Unit
    ) -> TrainedLaw:
        """Return the law of one action."""
        features = self.torso(observation)
        return self.head.law(features, action, self.placer(features, unit)[action])
