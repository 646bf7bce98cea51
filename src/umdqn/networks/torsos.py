"""The torsos of the paper: an MLP, after convolutions where observations are pictures."""

from __future__ import annotations

import abc
import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
from jaxtyping import Array, Float, Shaped

from umdqn.errors import check
from umdqn.networks import dense
from umdqn.networks.convolutions import Layer, picture_shape, receptive_field
from umdqn.networks.fronts import Front, front
from umdqn.networks.torso import Embedding, Torso
from umdqn.parts.ranges import Widths
from umdqn.specs import Key, Observation


class Network(eqx.Module):
    """What an observation is turned into, flat, and then an MLP, whose last layer is linear."""

    front: Front
    mlp: dense.Mlp

    def __init__(self, front: Front, widths: tuple[int, ...], key: Key):
        self.front = front
        self.mlp = dense.Mlp((front.size, *widths), key)

    def __call__(self, observation: Shaped[Array, "..."]) -> Float[Array, "features"]:
        return self.mlp(self.front(observation))


@dataclasses.dataclass(frozen=True)
class _Dense(Torso, abc.ABC):
    widths: Widths = (128, 128)
    """Widths of the dense layers; the last one, which is linear, is the embedding's size."""

    def build(self, observation: Observation, key: Key) -> Embedding:
        dense_key = jax.random.split(key, 1)[0]
        return Network(front(observation, self._layers, key), self.widths, dense_key)

    @abc.abstractmethod
    def _layers(self, picture: Observation) -> tuple[Layer, ...]:
        """Return the convolutions that a picture goes through."""


@dataclasses.dataclass(frozen=True)
class Mlp(_Dense):
    """Dense layers alone; pictures are flattened."""

    def _layers(self, picture: Observation) -> tuple[Layer, ...]:
        return ()


@dataclasses.dataclass(frozen=True)
class _Convolutional(_Dense, abc.ABC):
    layers: ClassVar[tuple[Layer, ...]]

    def build(self, observation: Observation, key: Key) -> Embedding:
        if not (observation.is_picture or observation.is_packed):
            self._refuse(observation)
        return super().build(observation, key)

    def _layers(self, picture: Observation) -> tuple[Layer, ...]:
        if smallest_side(picture) < receptive_field(self.layers):
            self._refuse(picture)
        return self.layers

    def _refuse(self, observation: Observation) -> None:
        least = receptive_field(self.layers)
        allowed = f"pictures of three axes and at least {least} pixels, not {observation}"
        check(False, "torso", type(self).__name__.lower(), allowed)


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

    def _layers(self, picture: Observation) -> tuple[Layer, ...]:
        for kind in (Nature, MinAtar):
            if smallest_side(picture) >= receptive_field(kind.layers):
                return kind.layers
        return ()


def smallest_side(observation: Observation) -> int:
    """Return height or width of a picture, whichever is less; 0 for anything else."""
    return min(picture_shape(observation)[:2]) if observation.is_picture else 0
