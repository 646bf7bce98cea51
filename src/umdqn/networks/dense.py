"""Dense layers, written for one sample."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from umdqn.numerics.products import product
from umdqn.specs import Key


class Linear(eqx.Module):
    """An affine map, Xavier-uniform weights and zero bias (appendix C)."""

    weight: Float[Array, "inputs outputs"]
    bias: Float[Array, "outputs"]

    def __init__(self, inputs: int, outputs: int, key: Key):
        self.weight = xavier_uniform(key, inputs, outputs)
        self.bias = jnp.zeros(outputs)

    def changed(
        self, weight: Float[Array, "inputs outputs"], bias: Float[Array, "outputs"]
    ) -> Linear:
        """Return a map of the same shape with given parameters."""
        return eqx.tree_at(lambda layer: (layer.weight, layer.bias), self, (weight, bias))

    def __call__(self, x: Float[Array, "*points inputs"]) -> Float[Array, "*points outputs"]:
        return product(x, self.weight) + self.bias


class Mlp(eqx.Module):
    """Linear layers with ReLU between them and none after the last."""

    layers: tuple[Linear, ...]

    def __init__(self, sizes: tuple[int, ...], key: Key):
        keys = jax.random.split(key, len(sizes) - 1)
        pairs = zip(sizes[:-1], sizes[1:], keys, strict=True)
        self.layers = tuple(Linear(inputs, outputs, key) for inputs, outputs, key in pairs)

    def __call__(self, x: Float[Array, "*points inputs"]) -> Float[Array, "*points outputs"]:
        for layer in self.layers[:-1]:
            x = jax.nn.relu(layer(x))
        return self.layers[-1](x)


def xavier_uniform(key: Key, inputs: int, outputs: int) -> Float[Array, "inputs outputs"]:
    """Glorot and Bengio's uniform initialisation."""
    bound = (6.0 / (inputs + outputs)) ** 0.5
    return jax.random.uniform(key, (inputs, outputs), minval=-bound, maxval=bound)
