"""Running mean and standard deviation of observations, in front of any torso."""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from umdqn.errors import check
from umdqn.networks.pieces import rejoin, split
from umdqn.networks.torso import Embedding, Torso
from umdqn.specs import UNBOUNDED, Key, Observation

# Length of the running average in observations, so that it keeps adapting.
_LONGEST = 1e6
_LEAST_VARIANCE = 1e-8
# Standard deviations beyond which numbers are clipped, as Stable-Baselines3 does.
_FURTHEST = 10.0


class Seen(NamedTuple):
    """Number, mean and variance of the numbers in the observations of batches."""

    total: Float[Array, ""]
    mean: Float[Array, "n"]
    variance: Float[Array, "n"]

    def after(self, numbers: Float[Array, "batch n"]) -> Seen:
        """Return the statistics with those of a batch (Chan, Golub and LeVeque)."""
        more = numbers.shape[0]
        share = more / (self.total + more)
        gap = jnp.mean(numbers, axis=0) - self.mean
        variance = (1 - share) * (self.variance + share * gap**2)
        variance = variance + share * jnp.var(numbers, axis=0)
        total = jnp.minimum(self.total + more, _LONGEST)
        return Seen(total, self.mean + share * gap, variance)


class Normalised(eqx.Module):
    """A torso that sees numbers in standard deviations from their mean.

    The statistics are parameters that no optimiser changes: `seen_after` does, once an update.
    """

    torso: Embedding
    seen: Seen
    observation: Observation = eqx.field(static=True)

    def __init__(self, torso: Torso, observation: Observation, key: Key):
        self.observation = observation
        self.torso = torso.build(_free(observation), key)
        size = len(_chosen(observation))
        self.seen = Seen(jnp.float32(0), jnp.zeros(size), jnp.ones(size))

    def __call__(self, x: Shaped[Array, "..."]) -> Float[Array, "features"]:
        seen = jax.lax.stop_gradient(self.seen)
        scale = jax.lax.rsqrt(seen.variance + _LEAST_VARIANCE)
        numbers = jnp.clip((self.numbers(x) - seen.mean) * scale, -_FURTHEST, _FURTHEST)
        return self.torso(self._with(x, numbers))

    def numbers(self, x: Shaped[Array, "..."]) -> Float[Array, "n"]:
        """Return the numbers of an observation that are normalised."""
        flat = self._flat(x)
        return flat[np.array(_chosen(self.observation))].astype(jnp.float32)

    def _with(self, x: Shaped[Array, "..."], numbers: Float[Array, "n"]) -> Shaped[Array, "..."]:
        flat = (
            self._flat(x).astype(jnp.float32).at[np.array(_chosen(self.observation))].set(numbers)
        )
        if not self.observation.is_packed:
            return flat.reshape(x.shape)
        return _repacked(self.observation, x, flat)

    def _flat(self, x: Shaped[Array, "..."]) -> Shaped[Array, "entries"]:
        """All entries, or those of the pieces that hold fractions where pictures are among them."""
        if not self.observation.is_packed:
            return x.reshape(-1)
        pieces = split(self.observation, x)
        return jnp.concatenate([pieces[i].reshape(-1) for i in _fractions(self.observation)])


def seen_after(torso: Embedding, batch: Shaped[Array, "batch ..."]) -> Seen:
    """Return the statistics of a normalised torso after a batch of observations."""
    assert isinstance(torso, Normalised)
    return torso.seen.after(jax.vmap(torso.numbers)(batch))


def _repacked(
    observation: Observation, x: Shaped[Array, "bytes"], flat: Float[Array, "entries"]
) -> Shaped[Array, "bytes"]:
    pieces, begin = list(split(observation, x)), 0
    for i in _fractions(observation):
        size = pieces[i].size
        pieces[i] = flat[begin : begin + size]
        begin += size
    return rejoin(pieces)


def _fractions(observation: Observation) -> list[int]:
    """Return which slots beside pictures hold fractions."""
    slots = enumerate(observation.slots)
    return [i for i, s in slots if s.seen.dtype == "float32" and not s.seen.is_picture]


def _chosen(observation: Observation) -> list[int]:
    """Return which entries are numbers, and not choices or pixels."""
    if observation.is_picture:
        return []
    if observation.is_packed:
        slots = observation.slots
        return list(range(sum(slots[i].seen.shape[0] for i in _fractions(observation))))
    if not observation.slots:
        return list(range(math.prod(observation.shape)))
    number = [not slot.counts for slot in observation.slots for _ in range(slot.seen.shape[0])]
    return np.flatnonzero(number).tolist()


def _free(observation: Observation) -> Observation:
    """Return what the torso behind sees: normalised numbers have no bounds."""
    fractions = _fractions(observation)
    slots = tuple(
        dataclasses.replace(slot, seen=_unbounded(slot.seen))
        if (i in fractions if observation.is_packed else not slot.counts)
        else slot
        for i, slot in enumerate(observation.slots)
    )
    whole = observation if observation.is_packed else _unbounded(observation)
    return dataclasses.replace(whole, slots=slots)


def _unbounded(seen: Observation) -> Observation:
    return dataclasses.replace(seen, dtype="float32", low=(-UNBOUNDED,), high=(UNBOUNDED,))


def check_numbers(observation: Observation) -> None:
    """Raise unless there is something to normalise."""
    some = len(_chosen(observation)) > 0
    check(some, "normalise_observations", True, f"observations with numbers, not {observation}")
