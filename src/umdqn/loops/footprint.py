"""How much memory training takes, known before anything is allocated or compiled."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from umdqn.agents.agent import Agent
from umdqn.agents.state import AgentState
from umdqn.errors import UmdqnError
from umdqn.loops.available import available_memory
from umdqn.loops.compilation import kept_programs
from umdqn.loops.compiled import CompiledLoop
from umdqn.loops.host import QUEUED_BATCHES, HostLoop
from umdqn.loops.machine import available_cores
from umdqn.replay.transition import Transition

# What compiling the programs of the smallest agents takes, measured.
_COMPILER = 120_000_000
# The gradient keeps at most about this many times the values that acting computes, measured over
# all algorithms.
_MOST_KEPT = 20


class Footprint(NamedTuple):
    """Bytes that training takes besides what the process holds already."""

    replay: int
    """Replay memories of all seeds."""
    agents: int
    """Networks, target networks and states of optimisers of all seeds, held and being saved."""
    updates: int
    """Batches, gradients and activations of the updates that run side by side."""
    programs: int = _COMPILER

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self)

    def __str__(self) -> str:
        return (
            f"replay {gigabytes(self.replay)}, agents {gigabytes(self.agents)}, "
            f"updates {gigabytes(self.updates)}, programs {gigabytes(self.programs)}"
        )


def gigabytes(size: int) -> str:
    """Write a number of bytes."""
    return f"{size / 1e9:,.2f} GB"


def require(needed: Footprint) -> None:
    """Raise if there is less memory than training takes."""
    available = available_memory()
    if available is not None and needed.total > available:
        raise UmdqnError(
            f"training takes about {gigabytes(needed.total)} of memory and "
            f"{gigabytes(available)} are available ({needed}): seeds, replay.capacity, "
            "replay.batch_size and the sizes of the networks set how much"
        )


def footprint(loop: CompiledLoop | HostLoop, seeds: int) -> Footprint:
    """Return what training so many seeds of a loop takes."""
    state = jax.eval_shape(loop.agent.init, jax.random.key(0))
    batch = loop.replay.batch_size
    hosted = isinstance(loop, HostLoop)
    parallel = min(seeds, available_cores()) if jax.default_backend() == "cpu" else seeds
    seen = loop.agent.spec.observation
    row = 2 * math.prod(seen.shape) * np.dtype(seen.dtype).itemsize
    # New parameters are in memory together with the old ones and the gradient.
    update = 2 * _bytes(state.params) + _activations(loop.agent, batch, parallel)
    update += row * batch * (QUEUED_BATCHES if hosted else 1)
    return Footprint(
        loop.memory.nbytes * seeds,
        # Checkpoints are encoded in memory, those of all seeds in one file.
        2 * _bytes(state) * seeds,
        update * parallel,
    )


def _activations(agent: Agent, batch: int, parallel: int) -> int:
    """Return the bytes that one update keeps between its forward and its backward pass.

    Tracing the gradient is slow. Where an upper bound, from the values that acting computes, is
    small against the available memory, the bound is returned instead.
    """
    bound = _MOST_KEPT * batch * _computed_by_acting(agent)
    small = (available_memory() or 0) // (_MOST_KEPT * parallel)
    return bound if bound < small else _kept_bytes(agent, batch)


@kept_programs
def _kept_bytes(agent: Agent, batch: int) -> int:
    state = jax.eval_shape(agent.init, jax.random.key(0))
    return _bytes(jax.eval_shape(lambda: _kept(agent, state, batch)))


def _kept(agent: Agent, state: AgentState, batch: int) -> PyTree:
    """Return what the backward pass of an update needs of the forward pass."""
    seen = agent.spec.observation
    state = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), state)
    observations = jnp.zeros((batch, *seen.shape), seen.dtype)
    numbers, counts = jnp.zeros(batch), jnp.zeros(batch, jnp.int32)
    drawn = Transition(observations, counts, numbers, numbers, observations, counts)

    def loss(params: PyTree) -> jax.Array:
        return agent.losses(params, state, drawn, jax.random.key(0))[0].mean()

    return jax.vjp(loss, state.params)[1]


@kept_programs
def _computed_by_acting(agent: Agent) -> int:
    """Return the bytes of all values that the choice of one action computes."""
    learned = jax.eval_shape(agent.init, jax.random.key(0)).learned
    seen = jax.ShapeDtypeStruct(agent.spec.observation.shape, agent.spec.observation.dtype)
    traced = jax.make_jaxpr(lambda *given: agent.scores(agent.laws(*given)))(learned, seen)
    return _computed(traced.jaxpr)


def _computed(program: Any) -> int:
    """Return the bytes of all values that a traced program computes; a loop's body counts once."""
    total = 0
    for equation in program.eqns:
        inner = [_computed(each) for each in _inner(equation)]
        total += max(inner) if inner else sum(_size(value.aval) for value in equation.outvars)
    return total


def _inner(equation: Any) -> Iterator[Any]:
    """Yield the programs that one step of a program calls."""
    for given in equation.params.values():
        for each in given if isinstance(given, list | tuple) else [given]:
            program = getattr(each, "jaxpr", each)
            if hasattr(program, "eqns"):
                yield program


def _bytes(tree: PyTree) -> int:
    """Return the bytes of all arrays of a tree, which may be shapes only."""
    return sum(_size(leaf) for leaf in jax.tree.leaves(tree))


def _size(array: Any) -> int:
    if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
        return 0
    return math.prod(array.shape) * np.dtype(array.dtype).itemsize
