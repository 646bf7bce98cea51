"""One seed at one step, as files keep it, and checks of the arrays that files hold."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jaxtyping import PyTree

from umdqn.agents.state import AgentState
from umdqn.errors import UmdqnError
from umdqn.replay.memory import Memory
from umdqn.replay.rings import Rings, Rows

T = TypeVar("T")

# A checkpoint must not need much more memory than the run itself.
_PIECE_BYTES = 16_000_000


class Snapshot(NamedTuple):
    """Everything that a seed needs to continue as if it had not stopped."""

    agent: AgentState
    rest: dict[str, np.ndarray]
    """Everything small: environment, counters, randomness."""
    entered: list[int]
    """Rows that each ring of the memory ever entered."""
    room: list[int]
    """Rows that each ring holds."""
    row_bytes: int
    """About how many bytes a row takes in files."""
    rows: Callable[[Sequence[int], Sequence[int]], Rows]
    """Return the rows entered between given counts."""

    @classmethod
    def of(
        cls, agent: AgentState, rest: dict[str, np.ndarray], memory: Memory, rings: Rings
    ) -> Snapshot:
        """Return the snapshot of a seed with NumPy rings."""
        return cls(
            agent,
            rest,
            memory.entered(rings),
            memory.room,
            memory.storage.row_bytes,
            partial(memory.rows, rings),
        )

    def pieces(self, since: Sequence[int]) -> Iterator[tuple[list[int], Rows]]:
        """Yield the rows entered since given counts, in pieces that take little memory.

        Each comes with the counts that it reaches; there is at least one piece, maybe empty.
        """
        oldest = [n - room for n, room in zip(self.entered, self.room, strict=True)]
        start = np.maximum(since, oldest)
        left = self.entered - start
        count = max(-(-int(left.sum()) * self.row_bytes // _PIECE_BYTES), 1)
        ends = [(start + left * i // count).tolist() for i in range(count + 1)]
        for first, last in itertools.pairwise(ends):
            yield last, self.rows(first, last)


class Restored(NamedTuple):
    """A snapshot read back."""

    agent: AgentState
    rest: dict[str, np.ndarray]
    entered: list[int]
    rows: Iterable[Rows]
    """Pieces of the memory, oldest first; they can be read once."""


def named_leaves(tree: PyTree) -> dict[str, Any]:
    """Return the leaves of a tree by their paths."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}


def named_agents(agents: Mapping[int, PyTree]) -> dict[str, np.ndarray]:
    """Return the arrays of agents by seed and path."""
    return {
        f"{seed}{name}": np.asarray(leaf)
        for seed, agent in agents.items()
        for name, leaf in named_leaves(agent).items()
    }


def from_named(like: T, arrays: Mapping[str, np.ndarray], where: str) -> T:
    """Return a tree with the structure, shapes and types of `like`, from arrays by path."""
    expected = {name: (leaf.shape, leaf.dtype) for name, leaf in named_leaves(like).items()}
    if {name: (array.shape, array.dtype) for name, array in arrays.items()} != expected:
        raise UmdqnError(f"{where} is corrupt: its arrays are not those of the manifest")
    return jax.tree_util.tree_map_with_path(
        lambda path, _: arrays[jax.tree_util.keystr(path)], like
    )


class Like(NamedTuple):
    """Kinds of types and shape of an array; -1 allows any length."""

    kinds: str
    shape: tuple[int, ...]


def check_arrays(
    arrays: Mapping[str, np.ndarray], expected: Mapping[str, Like], where: str
) -> None:
    """Raise `UmdqnError` unless arrays are there with the expected types and shapes."""
    for name, like in expected.items():
        array = arrays.get(name)
        good = array is not None and array.dtype.kind in like.kinds and _fits(array, like.shape)
        if not good:
            found = "missing" if array is None else f"{array.dtype} of shape {array.shape}"
            raise UmdqnError(f"{where} is corrupt: array {name!r} is {found}")


def _fits(array: np.ndarray, shape: tuple[int, ...]) -> bool:
    pairs = zip(array.shape, shape, strict=False)
    return array.ndim == len(shape) and all(want in (-1, have) for have, want in pairs)


def require(condition: Any, what: str, where: str) -> None:
    """Raise `UmdqnError` unless what an array holds makes sense."""
    if not condition:
        raise UmdqnError(f"{where} is corrupt: {what}")


def random_words(random: np.random.Generator) -> np.ndarray:
    """Return the state of a generator as numbers."""
    state: Any = random.bit_generator.state
    halves = [
        word >> shift & (2**64 - 1)
        for word in (state["state"]["state"], state["state"]["inc"])
        for shift in (64, 0)
    ]
    return np.array([*halves, state["has_uint32"], state["uinteger"]], np.uint64)


def from_words(words: np.ndarray) -> np.random.Generator:
    """Return the generator of such a state."""
    numbers = [int(word) for word in words]
    # Whether 32 bits of a word are left over, and these bits; NumPy accepts no other numbers.
    numbers[4], numbers[5] = int(numbers[4] > 0), numbers[5] & (2**32 - 1)
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
