"""Fronts of networks: from an observation to a flat vector that dense layers read."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from umdqn.networks.convolutions import (
    Convolution,
    Layer,
    channels_first,
    outputs,
    picture_shape,
)
from umdqn.networks.pieces import split
from umdqn.networks.scaling import scaling
from umdqn.specs import Key, Observation


class Front(eqx.Module):
    """Turns an observation into a flat vector of a given size."""

    size: eqx.AbstractVar[int]

    @abc.abstractmethod
    def __call__(self, observation: Shaped[Array, "..."]) -> Float[Array, "size"]:
        """Return the vector."""


class _Scale(eqx.Module):
    """Shifts and scales entries as their bounds say."""

    centre: tuple[float, ...] = eqx.field(static=True)
    half_width: tuple[float, ...] = eqx.field(static=True)

    def __init__(self, observation: Observation, picture: bool):
        self.centre, self.half_width = scaling(observation, picture)

    def __call__(self, x: Shaped[Array, "..."]) -> Float[Array, "..."]:
        centre, half_width = (np.array(v, np.float32) for v in (self.centre, self.half_width))
        return (x.astype(jnp.float32) - centre) * (1 / half_width)


class Flat(Front):
    """The scaled entries of an observation, one after the other."""

    scale: _Scale
    size: int = eqx.field(static=True)

    def __init__(self, observation: Observation):
        self.scale = _Scale(observation, picture=False)
        self.size = math.prod(observation.shape)

    def __call__(self, observation: Shaped[Array, "..."]) -> Float[Array, "size"]:
        return self.scale(observation.reshape(-1))


class Picture(Front):
    """A picture after convolutions."""

    convolutions: tuple[Convolution, ...]
    scale: _Scale
    channels_first: bool = eqx.field(static=True)
    size: int = eqx.field(static=True)

    def __init__(self, observation: Observation, layers: tuple[Layer, ...], key: Key):
        self.scale = _Scale(observation, picture=True)
        self.channels_first = channels_first(observation)
        height, width, channels = picture_shape(observation)
        convolutions = []
        for layer, layer_key in zip(layers, _keys(key, len(layers)), strict=True):
            convolutions.append(Convolution(channels, layer, layer_key))
            height, width = (outputs(length, layer) for length in (height, width))
            channels = layer.filters
        self.convolutions = tuple(convolutions)
        self.size = height * width * channels

    def __call__(self, observation: Shaped[Array, "..."]) -> Float[Array, "size"]:
        x = jnp.moveaxis(observation, 0, -1) if self.channels_first else observation
        # Patches are gathered as bytes, which is fast, and scaled afterwards.
        first, *rest = self.convolutions
        x = first.from_patches(self.scale(first.patches(x)))
        for convolution in rest:
            x = convolution.from_patches(convolution.patches(x))
        return x.reshape(-1)


class Several(Front):
    """The pieces of an observation, each through a front of its own."""

    fronts: tuple[Front, ...]
    observation: Observation = eqx.field(static=True)
    size: int = eqx.field(static=True)

    def __init__(self, observation: Observation, fronts: tuple[Front, ...]):
        self.fronts, self.observation = fronts, observation
        self.size = sum(each.size for each in fronts)

    def __call__(self, observation: Shaped[Array, "..."]) -> Float[Array, "size"]:
        pieces = split(self.observation, observation)
        vectors = [each(piece) for each, piece in zip(self.fronts, pieces, strict=True)]
        return jnp.concatenate(vectors)


def front(
    observation: Observation, layers: Callable[[Observation], tuple[Layer, ...]], key: Key
) -> Front:
    """Return the front for an observation; `layers` says which convolutions a picture needs."""
    if observation.slots:
        pairs = zip(observation.slots, _keys(key, len(observation.slots)), strict=True)
        return Several(observation, tuple(front(slot.seen, layers, key) for slot, key in pairs))
    chosen = layers(observation) if observation.is_picture else ()
    return Picture(observation, chosen, key) if chosen else Flat(observation)


def _keys(key: Key, count: int) -> Key:
    """Return keys apart from the first, which is the dense layers' own."""
    return jax.random.split(key, 1 + count)[1:]
