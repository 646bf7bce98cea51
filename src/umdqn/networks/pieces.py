"""The pieces of an observation inside of compiled programs; `umdqn.layouts` puts them together."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Shaped

from umdqn.specs import Observation


def split(
    observation: Observation, array: Shaped[Array, "size"]
) -> tuple[Shaped[Array, "..."], ...]:
    """Return the pieces of one observation, each in its own shape and type."""
    found, begin = [], 0
    for slot in observation.slots:
        kind, size = jnp.dtype(slot.seen.dtype), math.prod(slot.seen.shape)
        width = size * kind.itemsize if observation.is_packed else size
        piece = array[begin : begin + width]
        piece = _from_bytes(piece, kind) if observation.is_packed else piece
        found.append(piece.reshape(slot.seen.shape))
        begin += width
    return tuple(found)


def _from_bytes(piece: Shaped[Array, "bytes"], kind: jnp.dtype) -> Shaped[Array, "entries"]:
    if kind == jnp.bool_:
        return piece != 0
    if kind.itemsize == 1:
        return jax.lax.bitcast_convert_type(piece, kind)
    return jax.lax.bitcast_convert_type(piece.reshape(-1, kind.itemsize), kind)


def rejoin(pieces: Sequence[Shaped[Array, "..."]]) -> Shaped[Array, "bytes"]:
    """Return the bytes of pieces, one after the other."""
    return jnp.concatenate([_bytes(piece.reshape(-1)) for piece in pieces])


def _bytes(piece: Shaped[Array, "entries"]) -> Shaped[Array, "bytes"]:
    if piece.dtype == jnp.bool_:
        return piece.astype(jnp.uint8)
    return jax.lax.bitcast_convert_type(piece, jnp.uint8).reshape(-1)
