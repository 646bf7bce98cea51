"""Several seeds of the compiled loop: one per core on CPUs, all in one program on accelerators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from umdqn.agents.state import AgentState
from umdqn.loops.compilation import kept_programs
from umdqn.loops.compiled import CompiledLoop, LoopState
from umdqn.loops.machine import available_cores, named_exhaustion
from umdqn.loops.progress import Progress
from umdqn.loops.snapshot import Restored, Snapshot
from umdqn.loops.training import finish_all

T = TypeVar("T")


class _Programs(NamedTuple):
    init: Callable[..., Any]
    chunk: Callable[..., Any]


@kept_programs
def _programs(loop: CompiledLoop, batched: bool) -> _Programs:
    init = jax.vmap(loop.init) if batched else loop.init
    chunk = jax.vmap(loop.chunk, in_axes=(0, None, None)) if batched else loop.chunk
    return _Programs(jax.jit(init), jax.jit(chunk, donate_argnums=0))


class CompiledTraining:
    """Seeds of one loop, advanced together.

    On a CPU every seed runs the same single-seed program in a thread of its own, as many at once as
    there are cores: a seed's bits do not depend on which other seeds run beside it. Threads run in
    parallel also where JAX started with a single device; devices of their own are a little faster,
    and compile the program once each, at the same time.
    On an accelerator the seeds are batched into one program, whose sums round otherwise: a seed
    then has other bits than alone.
    """

    def __init__(self, loop: CompiledLoop, seeds: Sequence[int], batched: bool | None = None):
        devices = jax.devices()
        self._batched = devices[0].platform != "cpu" if batched is None else batched
        self._loop, self._step = loop, 0
        self._programs = _programs(loop, self._batched)
        self._groups = [tuple(seeds)] if self._batched else [(seed,) for seed in seeds]
        self._devices = [devices[i % len(devices)] for i in range(len(self._groups))]
        self._pool = ThreadPoolExecutor(min(len(self._groups), available_cores()))
        with named_exhaustion():
            self._states = [
                self._first_state(group, device)
                for group, device in zip(self._groups, self._devices, strict=True)
            ]

    def _first_state(self, group: tuple[int, ...], device: jax.Device) -> LoopState:
        """Return the state before the first step, once it is computed.

        Waits here, because reading a state whose program failed would hang.
        """
        made = jax.block_until_ready(self._programs.init(self._keys(group)))
        return jax.block_until_ready(jax.device_put(made, device))

    def _keys(self, group: tuple[int, ...]) -> jax.Array:
        keys = jnp.stack([jax.random.key(seed) for seed in group])
        return keys if self._batched else keys[0]

    def advance(self, steps: int) -> list[Progress]:
        """Take `steps` steps with every seed; return one report per seed."""

        def work(group: int) -> Progress:
            with named_exhaustion():
                self._states[group], progress = jax.block_until_ready(
                    self._programs.chunk(self._states[group], np.int32(self._step), np.int32(steps))
                )
            return jax.device_get(progress)

        reports = finish_all(self._pool, work, range(len(self._groups)))
        self._step += steps
        return [one for report in reports for one in self._split(report)]

    def states(self) -> list[LoopState]:
        """Return the state of every seed."""
        return [state for group in self._states for state in self._split(group)]

    def agents(self) -> list[AgentState]:
        """Return the agent of every seed."""
        return [agent for state in self._states for agent in self._split(state.agent)]

    def snapshots(self) -> list[Snapshot]:
        """Return every seed as files keep it."""
        return [self._loop.snapshot(state, self._step) for state in self.states()]

    def restore(self, restored: Sequence[Restored], where: str) -> None:
        """Continue from snapshots, one per seed."""
        found = [self._loop.restore(one, where) for one in restored]
        states = [state for state, _ in found]
        self._step = found[0][1]
        if self._batched:
            states = [jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)]
        self._states = [
            jax.device_put(state, device)
            for state, device in zip(states, self._devices, strict=True)
        ]

    def warm(self) -> None:
        """Take the memory that training needs: it is taken when the states are made."""
        jax.block_until_ready(self._states)

    def close(self) -> None:
        """Release the worker threads."""
        self._pool.shutdown()

    def _split(self, tree: T) -> list[T]:
        """One tree per seed of a group."""
        if not self._batched:
            return [tree]
        count = len(self._groups[0])
        return [jax.tree.map(lambda leaf, i=i: leaf[i], tree) for i in range(count)]
