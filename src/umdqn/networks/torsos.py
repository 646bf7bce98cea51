"""The torsos of the paper: an MLP, after convolutions where observations are pictures."""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from umdqn.errors import check
from umdqn.networks import dense
from umdqn.networks.convolutions import (
    Convolution,
    Layer,
    channels_first,
    outputs,
    picture_shape,
    receptive_field,
)
from umdqn.networks.scaling import scaling
from umdqn.networks.torso import Embedding, Torso
from umdqn.parts.ranges import Widths
from umdqn.specs import Key, Observation


class Network(eqx.Module):
    """Scales the observation by its bounds, then convolutions if any, then an MLP.

    The last layer of the MLP is linear.
    """

    convolutions: tuple[Convolution, ...]
    mlp: dense.Mlp
    centre: tuple[float, ...] = eqx.field(static=True)
    half_width: tuple[float, ...] = eqx.field(static=True)
    channels_first: bool = eqx.field(static=True)

    def __init__(
        self,
        observation: Observation,
        layers: tuple[Layer, ...],
        widths: tuple[int, ...],
        key: Key,
    ):
        mlp_key, *keys = jax.random.split(key, 1 + len(layers))
        self.centre, self.half_width = scaling(observation, picture=bool(layers))
        self.channels_first = observation.is_picture and channels_first(observation)
        inputs = math.prod(observation.shape)
        convolutions = []
        if layers:
            height, width, channels = picture_shape(observation)
            for layer, layer_key in zip(layers, keys, strict=True):
                convolutions.append(Convolution(channels, layer, layer_key))
                height, width = (outputs(length, layer) for length in (height, width))
                channels = layer.filters
            inputs = height * width * channels
        self.convolutions = tuple(convolutions)
        self.mlp = dense.Mlp((inputs, *widths), mlp_key)

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


@dataclasses.dataclass(frozen=True)
class _Dense(Torso, abc.ABC):
    widths: Widths = (128, 128)
    """Widths of the dense layers; the last one, which is linear, is the embedding's size."""


@dataclasses.dataclass(frozen=True)
class Mlp(_Dense):
    """Dense layers alone; pictures are flattened."""

    def build(self, observation: Observation, key: Key) -> Embedding:
        return Network(observation, (), self.widths, key)


@dataclasses.dataclass(frozen=True)
class _Convolutional(_Dense, abc.ABC):
    layers: ClassVar[tuple[Layer, ...]]

    def build(self, observation: Observation, key: Key) -> Embedding:
        least = receptive_field(self.layers)
        name = type(self).__name__.lower()
        check(
            smallest_side(observation) >= least,
            "torso",
            name,
            f"pictures of three axes and at least {least} pixels, not {observation}",
        )
        return Network(observation, self.layers, self.widths, key)


@dataclasses.dataclass(frozen=True)
class MinAtar(_Convolutional):
    """One convolution of 16 filters (3 x 3), then dense layers: the paper's torso for MinAtar."""

    layers: ClassVar[tuple[Layer, ...]] = (Layer(16, 3, 1),)


@dataclasses.dataclass(frozen=True)
class Nature(_Convolutional):
    """The three convolutions of Nature DQN, then dense layers: the paper's torso for Atari."""

    layers: ClassVar[tuple[Layer, ...]] = (Layer(32, 8, 4), Layer(64, 4, 2), Layer(64, 3, 1))


@dataclasses.dataclass(frozen=True)
class Auto(_Dense):
    """`mlp` for vectors; for pictures `nature`, `minatar` or `mlp`, by their size."""

    def build(self, observation: Observation, key: Key) -> Embedding:
        return self.chosen(observation).build(observation, key)

    def chosen(self, observation: Observation) -> Torso:
        """Return the torso that suits an observation."""
        for kind in (Nature, MinAtar):
            if smallest_side(observation) >= receptive_field(kind.layers):
                return kind(self.widths)
        return Mlp(self.widths)


def smallest_side(observation: Observation) -> int:
    """Return height or width of a picture, whichever is less; 0 for anything else."""
    return min(picture_shape(observation)[:2]) if observation.is_picture else 0
