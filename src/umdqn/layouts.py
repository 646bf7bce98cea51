"""Layouts: structured observations as one array, and back.

Memories, loops and checkpoints hold one array per observation. Choices become one-hot vectors, and
pieces are put one after the other: as numbers, or as bytes where pictures are among them, so that
pixels stay as small as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from umdqn.errors import InvalidField
from umdqn.specs import Observation, Slot


def joined(slots: Sequence[Slot]) -> Observation:
    """Return the observation that is made of some pieces."""
    kinds = [np.dtype(slot.seen.dtype) for slot in slots]
    sizes = [math.prod(slot.seen.shape) for slot in slots]
    if any(slot.seen.is_picture for slot in slots):
        size = sum(n * kind.itemsize for n, kind in zip(sizes, kinds, strict=True))
        return Observation((size,), "uint8", (0.0,), (255.0,), slots=tuple(slots))
    low, high = (
        tuple(bound for slot in slots for bound in _per_entry(getattr(slot.seen, side), slot.seen))
        for side in ("low", "high")
    )
    dtype = np.result_type(*kinds).name
    return Observation((sum(sizes),), dtype, _shortened(low), _shortened(high), slots=tuple(slots))


def _per_entry(bounds: tuple[float, ...], seen: Observation) -> tuple[float, ...]:
    return bounds * math.prod(seen.shape) if len(bounds) == 1 else bounds


def _shortened(bounds: tuple[float, ...]) -> tuple[float, ...]:
    return bounds[:1] if len(set(bounds)) == 1 else bounds


def encode(observation: Observation, value: Any) -> np.ndarray | None:
    """Return a structured observation, or a batch of them, as arrays agents read.

    Returns None if the value is no structure: it may be such an array already. Raises
    `InvalidField` if a piece is missing or has another shape.
    """
    slots = observation.slots
    if isinstance(value, list) and value and isinstance(value[0], Mapping | tuple):
        rows = [encode(observation, each) for each in value]
        return np.stack([row for row in rows if row is not None])
    whole = len(slots) == 1 and not slots[0].path
    if not slots or not (_is_number(value, slots[0]) if whole else _is_container(value)):
        return None
    pieces = [_read(slot, follow(slot.path, value)) for slot in slots]
    leading = {piece.shape[:-1] for piece in pieces}
    if len(leading) > 1:
        shapes = ", ".join(sorted(map(str, leading)))
        raise InvalidField(
            "observation", f"batches {shapes}", "pieces of equally many observations"
        )
    return join(observation, pieces)


def join(observation: Observation, pieces: Sequence[np.ndarray]) -> np.ndarray:
    """Put pieces `[..., size]` one after the other, as an observation holds them."""
    if observation.is_packed:
        pieces = [
            np.ascontiguousarray(piece, slot.seen.dtype).view(np.uint8)
            for slot, piece in zip(observation.slots, pieces, strict=True)
        ]
    return np.concatenate(pieces, axis=-1, dtype=observation.dtype, casting="unsafe")


def follow(path: Sequence[str], value: Any) -> Any:
    """Return the piece of a structure that a path leads to."""
    for step in path:
        try:
            value = value[step[1:]] if step[0] == "." else value[int(step[1:-1])]
        except (KeyError, IndexError, TypeError):
            name = "".join(path).removeprefix(".")
            raise InvalidField("observation", _kind(value), f"a structure with {name!r}") from None
    return value


def one_hot(slot: Slot, numbers: np.ndarray) -> np.ndarray:
    """Return choices `[..., entries]` as one-hot vectors, one after the other."""
    starts = slot.start or (0,) * len(slot.counts)
    vectors = [
        numbers[..., entry, None] - start == np.arange(count)
        for entry, (count, start) in enumerate(zip(slot.counts, starts, strict=True))
    ]
    return np.concatenate(vectors, axis=-1)


def decode(observation: Observation, array: np.ndarray) -> Any:
    """Return one observation as its environment gave it."""
    if not observation.slots:
        return array.copy()
    found, begin = {}, 0
    for slot in observation.slots:
        kind, size = np.dtype(slot.seen.dtype), math.prod(slot.seen.shape)
        width = size * kind.itemsize if observation.is_packed else size
        piece = array[begin : begin + width]
        piece = piece.copy().view(kind) if observation.is_packed else piece.astype(kind)
        found[slot.path] = _original(slot, piece)
        begin += width
    return _assembled(found)


def _original(slot: Slot, piece: np.ndarray) -> Any:
    if not slot.counts:
        return piece.reshape(slot.shape)
    ends, starts = np.cumsum(slot.counts), slot.start or (0,) * len(slot.counts)
    chosen = [int(part.argmax()) for part in np.split(piece, ends[:-1])]
    numbers = np.array(chosen, np.int64) + np.array(starts, np.int64)
    return numbers.reshape(slot.shape) if slot.shape else int(numbers[0])


def _assembled(found: Mapping[tuple[str, ...], Any]) -> Any:
    """Return the structure whose pieces are at given paths."""
    if () in found:
        return found[()]
    inner: dict[str, dict[tuple[str, ...], Any]] = {}
    for path, value in found.items():
        inner.setdefault(path[0], {})[path[1:]] = value
    members = {step: _assembled(each) for step, each in inner.items()}
    if next(iter(members)).startswith("["):
        return tuple(members.values())
    return {step[1:]: value for step, value in members.items()}


def _read(slot: Slot, value: Any) -> np.ndarray:
    """Return a piece, or a batch of them, as `[..., size]`."""
    allowed = f"{slot.name or 'numbers'} of shape {slot.shape}, or a batch of such"
    try:
        found = np.asarray(value, np.int64 if slot.counts else slot.seen.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidField("observation", _kind(value), allowed) from error
    axes = len(slot.shape)
    if found.shape[found.ndim - axes :] != slot.shape or not 0 <= found.ndim - axes <= 1:
        raise InvalidField("observation", f"shape {found.shape}", allowed)
    flat = found.reshape(*found.shape[: found.ndim - axes], -1)
    if not slot.counts:
        return flat
    vectors = one_hot(slot, flat)
    if (vectors.sum(axis=-1) != len(slot.counts)).any():
        low, high = slot.start or 0, np.add(slot.start or 0, slot.counts) - 1
        numbers = f"{slot.name or 'states'} from {_short(low)} to {_short(high)}"
        raise InvalidField("observation", np.asarray(value).tolist(), numbers)
    return vectors


def _short(bounds: Any) -> str:
    found = sorted(set(np.atleast_1d(bounds).tolist()))
    return str(found[0] if len(found) == 1 else np.asarray(bounds).tolist())


def _is_container(value: Any) -> bool:
    return isinstance(value, Mapping | tuple)


def _is_number(value: Any, slot: Slot) -> bool:
    """Whether a value holds numbers of choices, and not the vectors that agents see."""
    if not slot.counts or isinstance(value, bool):
        return False
    found = np.asarray(value)
    if found.dtype.kind not in "iu" or found.shape[-1:] == slot.seen.shape:
        return False
    return found.ndim - len(slot.shape) in (0, 1)


def _kind(value: Any) -> str:
    return f"{type(value).__name__} {' '.join(repr(value).split())[:60]}"
