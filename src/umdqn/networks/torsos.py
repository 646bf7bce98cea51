"""Torsos: from one observation to its embedding."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from umdqn.networks.dense import Mlp, xavier_uniform
from umdqn.types import Key, Observation, check

Convolutions = Literal["auto", "none", "minatar", "nature"]
"""`auto` decides by the shape of the observation."""


class Layer(NamedTuple):
    """A convolution without padding, followed by a ReLU."""

    filters: int
    size: int
    stride: int


CONVOLUTIONS: dict[str, tuple[Layer, ...]] = {
    "none": (),
    "minatar": (Layer(16, 3, 1),),
    "nature": (Layer(32, 8, 4), Layer(64, 4, 2), Layer(64, 3, 1)),
}
"""The stacks of convolutions that the paper's networks begin with."""

# Half the distance between bounds that are likely to be reached.
_WIDE = 3.0


def choose_convolutions(observation: Observation) -> str:
    """What suits an observation: nothing for vectors, else by the size of the picture."""
    if len(observation.shape) != 3:
        return "none"
    height, width, _ = _picture_shape(observation)
    smallest = min(height, width)
    if smallest >= _field(CONVOLUTIONS["nature"]):
        return "nature"
    return "minatar" if smallest >= _field(CONVOLUTIONS["minatar"]) else "none"


class Torso(eqx.Module):
    """Scales the observation by its bounds, then convolutions if any, then an MLP.

    Entries with narrow bounds are scaled to [-1, 1]; pictures to [0, 1], as the paper does. Wide
    bounds of measured quantities are limits that are seldom reached: those stay as they are. The
    last layer of the MLP is linear.
    """

    convolutions: tuple[_Convolution, ...]
    mlp: Mlp
    centre: tuple[float, ...] = eqx.field(static=True)
    half_width: tuple[float, ...] = eqx.field(static=True)
    channels_first: bool = eqx.field(static=True)

    def __init__(
        self,
        observation: Observation,
        convolutions: Convolutions,
        sizes: tuple[int, ...],
        key: Key,
    ):
        chosen = choose_convolutions(observation) if convolutions == "auto" else convolutions
        layers = CONVOLUTIONS[chosen]
        mlp_key, *keys = jax.random.split(key, 1 + len(layers))
        self.centre, self.half_width = _scaling(observation, picture=bool(layers))
        self.channels_first = len(observation.shape) == 3 and _channels_first(observation)
        inputs = math.prod(observation.shape)
        parts = []
        if layers:
            picture = len(observation.shape) == 3
            check(picture, "convolutions", chosen, f"pictures of three axes, not {observation}")
            height, width, channels = _picture_shape(observation)
            fits = min(height, width) >= _field(layers)
            allowed = f"pictures of at least {_field(layers)} pixels, not {observation}"
            check(fits, "convolutions", chosen, allowed)
            for layer, layer_key in zip(layers, keys, strict=True):
                parts.append(_Convolution(channels, layer, layer_key))
                height, width = (_outputs(length, layer) for length in (height, width))
                channels = layer.filters
            inputs = height * width * channels
        self.convolutions = tuple(parts)
        self.mlp = Mlp((inputs, *sizes), mlp_key)

    def __call__(self, observation: Shaped[Array, "..."]) -> Float[Array, "features"]:
        if not self.convolutions:
            return self.mlp(self._scaled(observation.reshape(-1)))
        x = jnp.moveaxis(observation, 0, -1) if self.channels_first else observation
        # Pixels are bytes: they are moved as such, and scaled when they are in place.
        first, *rest = self.convolutions
        x = first.from_patches(self._scaled(first.patches(x)))
        for convolution in rest:
            x = convolution.from_patches(convolution.patches(x))
        return self.mlp(x.reshape(-1))

    def _scaled(self, observation: Shaped[Array, "..."]) -> Float[Array, "..."]:
        centre, half_width = (np.array(v, np.float32) for v in (self.centre, self.half_width))
        return (observation.astype(jnp.float32) - centre) * (1 / half_width)


class _Convolution(eqx.Module):
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
    """Squares of pixels as single pixels with more channels; what is left over at the end goes."""
    if size == 1:
        return x
    rows, columns, channels = x.shape[0] // size, x.shape[1] // size, x.shape[2]
    squares = x[: rows * size, : columns * size].reshape(rows, size, columns, size, channels)
    return jnp.swapaxes(squares, 1, 2).reshape(rows, columns, size * size * channels)


def _scaling(
    observation: Observation, picture: bool
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    low, high = (np.array(bounds, np.float64) for bounds in (observation.low, observation.high))
    # Some environments write "no bound" as the largest number of their type.
    bounded = (low > -1e30) & (high < 1e30) & (low < high)
    if not picture and not np.issubdtype(observation.dtype, np.integer):
        bounded &= high - low <= 2 * _WIDE
    low, high = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
    if picture:
        # One scale for all pixels.
        low, high = low.min(keepdims=True), high.max(keepdims=True)
    centre = low if picture else (low + high) / 2
    return tuple(centre.tolist()), tuple((high - low if picture else (high - low) / 2).tolist())


def _channels_first(observation: Observation) -> bool:
    """Whether the channels of a picture are its first axis.

    Most pictures are square, and then the odd axis out is the channels; else it is the shorter end.
    """
    first, second, third = observation.shape
    if (first == second) != (second == third):
        return second == third
    return first < third


def _picture_shape(observation: Observation) -> tuple[int, int, int]:
    """Height, width and channels."""
    first, second, third = observation.shape
    return (second, third, first) if _channels_first(observation) else (first, second, third)


def _outputs(length: int, layer: Layer) -> int:
    return (length - layer.size) // layer.stride + 1


def _field(layers: tuple[Layer, ...]) -> int:
    """Pixels that one output of a stack of convolutions sees: the smallest picture it takes."""
    field = 1
    for layer in reversed(layers):
        field = (field - 1) * layer.stride + layer.size
    return field
