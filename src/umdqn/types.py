"""Words that every part of the package shares: errors, the domain, transitions, specifications."""

from __future__ import annotations

import dataclasses
import difflib
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, Shaped

AnyArray = Array | np.ndarray
"""An array of compiled programs or of NumPy."""

UNBOUNDED = 3.4e38
"""A bound that is none: finite, so that it can be written down."""

Key = jax.Array
"""A typed JAX random key."""

# Tables up to this size are listed whole in an error.
_FEW = 15
# Characters of somebody else's error that are worth showing.
_LONG = 400


class UmdqnError(Exception):
    """A mistake of the user's or a failure of their environment; the message is one clear line."""


class InvalidField(UmdqnError):
    """A configuration field with an impossible value."""

    def __init__(self, field: str, value: Any, allowed: str):
        self.field, self.value, self.allowed = field, value, allowed
        super().__init__(f"{field} = {value!r} is not allowed: {allowed}")

    def under(self, prefix: str) -> InvalidField:
        """The same error seen from the part that holds the field."""
        return InvalidField(f"{prefix}.{self.field}", self.value, self.allowed)


class Notice(Warning):
    """Something that a user should know, and that stops nothing."""


def notice(message: str) -> None:
    """Tell the user; the command line prints it as a line of its own."""
    warnings.warn(message, Notice, stacklevel=2)


def check(condition: bool, field: str, value: Any, allowed: str) -> None:
    """Raise `InvalidField` unless `condition` holds."""
    if not condition:
        raise InvalidField(field, value, allowed)


def check_count(field: str, value: int, least: int = 1, most: int | None = None) -> None:
    """Raise `InvalidField` unless `value` is a count, by default one that programs can hold."""
    bound = "below 2^31" if most is None else f"at most {most:,}"
    inside = least <= value < 2**31 and (most is None or value <= most)
    check(inside, field, value, f"at least {least} and {bound}")


def one_line(error: BaseException) -> str:
    """An exception as a short text without line breaks."""
    text = " ".join(str(error).split())[:_LONG]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def unknown(kind: str, name: str, known: Iterable[str]) -> UmdqnError:
    """The error for a name that is not in a table, with the nearest name that is."""
    names = sorted(set(known))
    # Capitals make no difference to what somebody meant.
    spelt = {known.lower(): known for known in names}
    close = difflib.get_close_matches(name.lower(), spelt, n=1, cutoff=0.5)
    parts = [f"did you mean {spelt[close[0]]!r}?"] if close else []
    if len(names) <= _FEW or not close:
        parts.append(f"known: {', '.join(names)}")
    return UmdqnError(f"unknown {kind} {name!r}: {' '.join(parts)}")


@dataclasses.dataclass(frozen=True)
class Domain:
    """The interval [z_min, z_max] of returns on which PDFs and CDFs are evaluated (appendix E)."""

    low: float
    high: float

    def __post_init__(self) -> None:
        bounded = all(abs(bound) < float("inf") for bound in (self.low, self.high))
        check(bounded, "domain", (self.low, self.high), "both bounds must be finite numbers")
        check(self.low < self.high, "domain", (self.low, self.high), "z_min must be below z_max")

    @property
    def centre(self) -> float:
        return (self.low + self.high) / 2

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    @property
    def width(self) -> float:
        return self.high - self.low

    def share_outside(self, z: np.ndarray) -> float:
        """Which share of some returns the domain does not hold."""
        return float(np.mean((z < self.low) | (z > self.high)))

    def to_unit(self, z: Float[ArrayLike, "..."]) -> Float[Array, "..."]:
        """Map the domain onto [-1, 1], the scale on which networks work."""
        return (jnp.asarray(z) - self.centre) / self.half_width

    def from_unit(self, x: Float[Array, "..."]) -> Float[Array, "..."]:
        """Map [-1, 1] onto the domain."""
        return self.centre + self.half_width * x


class Transition(NamedTuple):
    """One experience. `discount` is gamma, or 0 where the episode terminated (not truncated)."""

    observation: Shaped[Array, "..."]
    action: Int[Array, "..."]
    reward: Float[Array, "..."]
    discount: Float[Array, "..."]
    next_observation: Shaped[Array, "..."]


@dataclasses.dataclass(frozen=True)
class Observation:
    """What an observation looks like: its array, and the bounds of its entries."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: tuple[float, ...] = (-UNBOUNDED,)
    """Least value of each entry, or one value for all."""
    high: tuple[float, ...] = (UNBOUNDED,)
    stack: int = 1
    """How many frames an image stacks on its first axis: memories keep each frame once."""

    def __str__(self) -> str:
        kind = "numbers" if len(self.shape) == 1 else self.dtype
        return f"{' x '.join(map(str, self.shape))} {kind}"


@dataclasses.dataclass(frozen=True)
class EnvSpec:
    """What a learner may know of an environment before it starts."""

    name: str
    family: str
    """Which table of hyperparameters applies (appendix E of the paper)."""
    num_actions: int
    observation: Observation
    discount: float
    domain: Domain | None
    """Where its returns lie, if somebody has looked."""
    time_limit: int | None
    """Steps after which an episode is cut off, if the environment does so."""
    action_names: tuple[str, ...]
    reward_clip: float | None = None
    """Largest size of a reward in learning; scores count raw rewards."""
    first_action: int = 0
    """The number by which the environment knows the first action."""
