"""Torsos: from one observation to its embedding."""

from __future__ import annotations

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from umdqn.networks.dense import Mlp
from umdqn.types import EnvSpec, Key


class MlpTorso(eqx.Module):
    """Scale the observation to [-1, 1] by its bounds, then an MLP with a linear last layer."""

    mlp: Mlp
    centre: tuple[float, ...] = eqx.field(static=True)
    half_width: tuple[float, ...] = eqx.field(static=True)

    def __init__(self, spec: EnvSpec, sizes: tuple[int, ...], key: Key):
        low, high = np.array(spec.observation_low), np.array(spec.observation_high)
        self.centre = tuple(((low + high) / 2).tolist())
        self.half_width = tuple(((high - low) / 2).tolist())
        self.mlp = Mlp((len(low), *sizes), key)

    def __call__(self, observation: Float[Array, "inputs"]) -> Float[Array, "features"]:
        centre = np.asarray(self.centre, np.float32)
        return self.mlp((observation - centre) / np.asarray(self.half_width, np.float32))
