"""Specifications that every package shares: domains of returns, observations, environments."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from umdqn.errors import check, check_count

Key = jax.Array
"""A typed JAX random key."""

AnyArray = jax.Array | np.ndarray
"""An array of JAX or of NumPy."""

UNBOUNDED = 3.4e38
"""Value for "no bound"; finite, so that JSON can hold it."""

MOST_ACTIONS = 2**16
"""Most actions of an environment: networks have outputs for each, specifications a name."""

MOST_ENTRIES = 2**24
"""Most numbers in an observation."""


@dataclasses.dataclass(frozen=True)
class Domain:
    """The interval [z_min, z_max] of returns on which laws are resolved (appendix E)."""

    low: float
    high: float

    def __post_init__(self) -> None:
        bounded = all(abs(bound) < float("inf") for bound in (self.low, self.high))
        check(bounded, "domain", (self.low, self.high), "both bounds must be finite numbers")
        check(self.low < self.high, "domain", (self.low, self.high), "z_min must be below z_max")

    def share_outside(self, returns: np.ndarray) -> float:
        """Return the share of some returns that lie outside of the domain."""
        return float(np.mean((returns < self.low) | (returns > self.high)))


@dataclasses.dataclass(frozen=True)
class Keywords:
    """Keyword arguments that are plain data; equal and hashable by value."""

    text: str = "{}"
    """Them as JSON with sorted keys."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Keywords:
        """Return keyword arguments; raises `TypeError` or `ValueError` unless they are JSON."""
        return cls(json.dumps(dict(values), sort_keys=True, allow_nan=False))

    @property
    def values(self) -> dict[str, Any]:
        """The arguments by name."""
        return json.loads(self.text)

    def __str__(self) -> str:
        return " ".join(f"{name}={json.dumps(value)}" for name, value in self.values.items())


@dataclasses.dataclass(frozen=True)
class Observation:
    """Shape, type and bounds of an observation."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: tuple[float, ...] = (-UNBOUNDED,)
    """Lower bound of each entry, or one bound for all."""
    high: tuple[float, ...] = (UNBOUNDED,)
    """Upper bound of each entry, or one bound for all."""
    stack: int = 1
    """Frames that an image stacks on its first axis; replay memories keep each frame once."""
    slots: tuple[Slot, ...] = ()
    """What the array is made of, where the environment gives something other than one array."""

    def __post_init__(self) -> None:
        for length in self.shape:
            check_count("shape", length)
        entries = math.prod(self.shape)
        check(entries <= MOST_ENTRIES, "shape", self.shape, f"at most {MOST_ENTRIES:,} entries")
        numeric = "a NumPy type of real numbers, such as float32"
        check(_is_numeric(self.dtype), "dtype", self.dtype, numeric)
        for name, bounds in (("low", self.low), ("high", self.high)):
            fits = len(bounds) in (1, entries)
            check(fits, name, bounds, f"one bound, or one for each of {entries:,} entries")
            inside = all(-UNBOUNDED <= bound <= UNBOUNDED for bound in bounds)
            check(inside, name, bounds, f"numbers from {-UNBOUNDED:g} to {UNBOUNDED:g}")
        check_count("stack", self.stack)
        whole = self.stack == 1 or (self.is_picture and self.shape[0] == self.stack)
        check(
            whole, "stack", self.stack, f"1, or the first axis of a picture of shape {self.shape}"
        )
        sizes = [slot.bytes if self.is_packed else slot.size for slot in self.slots]
        same = not sizes or self.shape == (sum(sizes),)
        check(same, "slots", sizes, f"pieces that fill an array of shape {self.shape}")

    def __str__(self) -> str:
        if self.slots:
            return " and ".join(f"{slot.name or 'state'} ({slot.seen})" for slot in self.slots)
        kind = "numbers" if len(self.shape) == 1 else self.dtype
        return f"{' x '.join(map(str, self.shape))} {kind}"

    @property
    def is_picture(self) -> bool:
        """Whether observations are images (three axes)."""
        return len(self.shape) == 3

    @property
    def is_packed(self) -> bool:
        """Whether the array holds the bytes of its slots: where pictures are among them."""
        return any(slot.seen.is_picture for slot in self.slots)


@dataclasses.dataclass(frozen=True)
class Slot:
    """A piece of an observation: where the environment gives it, and what agents see of it."""

    path: tuple[str, ...]
    """Steps that lead to it: `.key` in a Dict, `[0]` in a Tuple."""
    seen: Observation
    """Numbers as they are; choices as one-hot vectors."""
    shape: tuple[int, ...] = ()
    """Shape that the environment gives."""
    counts: tuple[int, ...] = ()
    """How many values each entry can have, where entries are choices."""
    start: tuple[int, ...] = ()
    """Smallest value of each choice."""

    def __post_init__(self) -> None:
        steps = all(step[:1] == "." or _is_index(step) for step in self.path)
        check(steps, "path", self.path, "steps such as .key and [0]")
        check(not self.seen.slots, "seen", self.seen, "one array")
        entries = math.prod(self.shape)
        size = sum(self.counts) if self.counts else entries
        check(self.size == size, "seen", self.seen.shape, f"{size} entries")
        check(min(self.counts, default=1) > 0, "counts", self.counts, "at least 1 each")
        for name in ("counts", "start"):
            found = getattr(self, name)
            check(len(found) in (0, entries), name, found, f"{entries} numbers, or none")

    @property
    def size(self) -> int:
        """How many entries agents see."""
        return math.prod(self.seen.shape)

    @property
    def bytes(self) -> int:
        """How many bytes they take."""
        return self.size * np.dtype(self.seen.dtype).itemsize

    @property
    def name(self) -> str:
        """The path as users write it."""
        return "".join(self.path).removeprefix(".")


def _is_index(step: str) -> bool:
    return step[:1] == "[" and step[-1:] == "]" and step[1:-1].isdecimal()


def _is_numeric(dtype: Any) -> bool:
    """Return whether a NumPy type holds real numbers, or truth values."""
    try:
        return isinstance(dtype, str) and np.dtype(dtype).kind in "fiub"
    except TypeError:
        return False


@dataclasses.dataclass(frozen=True)
class EnvSpec:
    """What a learner knows of an environment before the first step."""

    name: str
    family: str
    """Family of environments, which selects the table of hyperparameters (appendix E)."""
    num_actions: int
    observation: Observation
    discount: float
    domain: Domain | None
    """Interval that holds the discounted returns, where known."""
    time_limit: int | None
    """Steps after which the environment truncates an episode, if it does."""
    action_names: tuple[str, ...]
    reward_clip: float | None = None
    """Largest absolute reward that learning sees; scores use raw rewards."""
    first_action: int = 0
    """The environment's number for the first action."""

    def __post_init__(self) -> None:
        check_actions("num_actions", self.num_actions)
        named = len(self.action_names) == self.num_actions
        check(named, "action_names", self.action_names, f"{self.num_actions} names")
        check(0 <= self.discount <= 1, "discount", self.discount, "from 0 to 1")
        if self.time_limit is not None:
            check_count("time_limit", self.time_limit)
        if self.reward_clip is not None:
            check(self.reward_clip > 0, "reward_clip", self.reward_clip, "above 0")

    def clipped(self, rewards: ArrayLike) -> np.ndarray:
        """Return rewards as learning sees them: laws are laws of the sum of clipped rewards."""
        clip = self.reward_clip
        return np.asarray(rewards) if clip is None else np.clip(rewards, -clip, clip)


def check_actions(field: str, count: Any) -> None:
    """Raise `InvalidField` unless agents can choose between so many actions."""
    check_count(field, count, most=MOST_ACTIONS)
