"""Convolutions as matrix products of patches."""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Shaped

from umdqn.networks.dense import xavier_uniform
from umdqn.specs import Key, Observation


class Layer(NamedTuple):
    """A convolution without padding, followed by a ReLU."""

    filters: int
    size: int
    stride: int


class Convolution(eqx.Module):
    """A convolution as one matrix product of patches, which CPUs differentiate fastest.

    Inputs are the last axis of the weights: their gradient is then a product of rows with rows,
    which takes half the time.
    """

    weight: Float[Array, "filters inputs"]
    bias: Float[Array, "filters"]
    size: int = eqx.field(static=True)
    stride: int = eqx.field(static=True)

    def __init__(self, channels: int, layer: Layer, key: Key):
        self.weight = xavier_uniform(key, channels * layer.size**2, layer.filters).T
        self.bias = jnp.zeros(layer.filters)
        self.size, self.stride = layer.size, layer.stride

    def patches(self, x: Shaped[Array, "h w c"]) -> Shaped[Array, "i j inputs"]:
        """What each output sees."""
        # Whole strides become channels first: larger pieces are copied faster.
        step = self.stride if self.size % self.stride == 0 else 1
        x, size, stride = _blocks(x, step), self.size // step, self.stride // step
        rows, columns = ((length - size) // stride + 1 for length in x.shape[:2])
        patches = [
            x[i : i + rows * stride : stride, j : j + columns * stride : stride]
            for i in range(size)
            for j in range(size)
        ]
        return jnp.concatenate(patches, axis=-1)

    def from_patches(self, patches: Float[Array, "i j inputs"]) -> Float[Array, "i j filters"]:
        """The outputs."""
        last, inputs = patches.ndim - 1, 1
        products = jax.lax.dot_general(patches, self.weight, (((last,), (inputs,)), ((), ())))
        return jax.nn.relu(products + self.bias)


def _blocks(x: Shaped[Array, "h w c"], size: int) -> Shaped[Array, "i j d"]:
    """Squares of pixels as single pixels with more channels; a remainder at the end is dropped."""
    if size == 1:
        return x
    rows, columns, channels = x.shape[0] // size, x.shape[1] // size, x.shape[2]
    squares = x[: rows * size, : columns * size].reshape(rows, size, columns, size, channels)
    return jnp.swapaxes(squares, 1, 2).reshape(rows, columns, size * size * channels)


def channels_first(observation: Observation) -> bool:
    """Whether the channels of a picture are its first axis.

    Most pictures are square, and then the odd axis out is the channels; else it is the shorter end.
    """
    first, second, third = observation.shape
    if (first == second) != (second == third):
        return second == third
    return first < third


def picture_shape(observation: Observation) -> tuple[int, int, int]:
    """Height, width and channels."""
    first, second, third = observation.shape
    return (second, third, first) if channels_first(observation) else (first, second, third)


def outputs(length: int, layer: Layer) -> int:
    """Return the length of a layer's output along one axis."""
    return (length - layer.size) // layer.stride + 1


def receptive_field(layers: tuple[Layer, ...]) -> int:
    """Pixels that one output of a stack of convolutions sees: the smallest picture it takes."""
    field = 1
    for layer in reversed(layers):
        field = (field - 1) * layer.stride + layer.size
    return field
