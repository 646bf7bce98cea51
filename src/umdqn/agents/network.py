"""The network of an agent: torso, placer and head."""

from __future__ import annotations

import equinox as eqx
import jax
from jaxtyping import Array, Float, Int, Shaped

from umdqn.errors import UmdqnError, one_line
from umdqn.laws.support import Support
from umdqn.laws.trained import TrainedLaw
from umdqn.networks.torso import Embedding
from umdqn.representations.representation import Head
from umdqn.specs import EnvSpec
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


def features_of(torso: Embedding, spec: EnvSpec) -> int:
    """Return the size of a torso's embedding; raises if it does not fit the observations."""
    seen = jax.ShapeDtypeStruct(spec.observation.shape, spec.observation.dtype)
    try:
        shape = eqx.filter_eval_shape(torso, seen).shape
    except Exception as error:
        raise UmdqnError(
            f"torso cannot embed observations of {spec.observation}: {one_line(error)}"
        ) from error
    if len(shape) != 1:
        raise UmdqnError(f"torso must embed an observation as a vector, not as {shape}")
    return shape[0]
