"""A seed at one step, as files can keep it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jaxtyping import PyTree

from umdqn.agents import AgentState
from umdqn.loops.rings import Rows
from umdqn.types import UmdqnError

T = TypeVar("T")


class Snapshot(NamedTuple):
    """All that a seed needs to go on as if nothing had happened."""

    agent: AgentState
    rest: dict[str, np.ndarray]
    """Everything small: environment, counters, randomness."""
    entered: list[int]
    """Rows that ever came into each ring of the memory."""
    room: list[int]
    """Rows that each ring holds."""
    rows: Callable[[Sequence[int]], Rows]
    """The rows that came since given counts."""


class Restored(NamedTuple):
    """A snapshot read back."""

    agent: AgentState
    rest: dict[str, np.ndarray]
    entered: list[int]
    rows: list[Rows]
    """Pieces of the memory, oldest first."""


def named_leaves(tree: PyTree) -> dict[str, Any]:
    """The leaves of a tree by their paths."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}


def from_named(like: T, arrays: Mapping[str, np.ndarray], where: str) -> T:
    """A tree of the structure, shapes and types of `like`, from arrays by path."""
    expected = {name: (leaf.shape, leaf.dtype) for name, leaf in named_leaves(like).items()}
    if {name: (array.shape, array.dtype) for name, array in arrays.items()} != expected:
        raise UmdqnError(f"{where} is corrupt: its arrays are not those of the manifest")
    return jax.tree_util.tree_map_with_path(
        lambda path, _: arrays[jax.tree_util.keystr(path)], like
    )


def random_words(random: np.random.Generator) -> np.ndarray:
    """The state of a generator as numbers."""
    state: Any = random.bit_generator.state
    halves = [
        word >> shift & (2**64 - 1)
        for word in (state["state"]["state"], state["state"]["inc"])
        for shift in (64, 0)
    ]
    return np.array([*halves, state["has_uint32"], state["uinteger"]], np.uint64)


def from_words(words: np.ndarray) -> np.random.Generator:
    """The generator of such a state."""
    numbers = [int(word) for word in words]
    bits = np.random.PCG64()
    bits.state = {
        "bit_generator": "PCG64",
        "state": {
            "state": numbers[0] << 64 | numbers[1],
            "inc": numbers[2] << 64 | numbers[3],
        },
        "has_uint32": numbers[4],
        "uinteger": numbers[5],
    }
    return np.random.Generator(bits)
