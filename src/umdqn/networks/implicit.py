"""The network of IQN and FQF: quantiles as a function of the fraction."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from umdqn.networks.dense import Linear
from umdqn.specs import Key


class ImplicitQuantileNetwork(eqx.Module):
    """Quantiles of all actions: the embedding times a cosine embedding of the fraction."""

    embedding: Linear
    hidden: Linear
    output: Linear

    def __init__(self, features: int, actions: int, cosines: int, hidden: int, key: Key):
        first, second, third = jax.random.split(key, 3)
        self.embedding = Linear(cosines, features, first)
        self.hidden = Linear(features, hidden, second)
        self.output = Linear(hidden, actions, third)

    def __call__(
        self, features: Float[Array, "features"], fractions: Float[Array, "n"]
    ) -> Float[Array, "n hidden"]:
        """The last hidden layer at given fractions."""
        frequencies = np.arange(1, self.embedding.weight.shape[0] + 1, dtype=np.float32)
        waves = jnp.cos(np.float32(np.pi) * frequencies * fractions[:, None])
        mixed = jax.nn.relu(features) * jax.nn.relu(self.embedding(waves))
        return jax.nn.relu(self.hidden(mixed))

    def quantiles(
        self, features: Float[Array, "features"], fractions: Float[Array, "n"]
    ) -> Float[Array, "actions n"]:
        """The quantiles that the network claims, for all actions."""
        return self.output(self(features, fractions)).T
