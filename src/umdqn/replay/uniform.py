"""Uniform replay."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np

from umdqn.replay.memory import Memory, make_storage
from umdqn.replay.replay import Replay
from umdqn.replay.rings import Random, Rings
from umdqn.replay.transition import Batch
from umdqn.specs import Observation


@dataclasses.dataclass(frozen=True)
class Uniform(Replay):
    """Every stored transition is drawn with the same probability."""

    def memory(self, observation: Observation, copies: int) -> Memory:
        storage = make_storage(observation, self.capacity, copies)
        return UniformMemory(storage, self.batch_size, self.n_step)


@dataclasses.dataclass(frozen=True)
class UniformMemory(Memory):
    """Draws uniformly with replacement; every transition counts the same."""

    def sample(self, rings: Rings, random: Random) -> Batch:
        index = self.storage.draw(rings, random, self.batch_size)
        library = np if isinstance(random, np.random.Generator) else jnp
        weight = library.ones(self.batch_size, np.float32)
        return Batch(self.transitions(rings, index), index, weight)
