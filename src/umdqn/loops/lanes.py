"""How several seeds share a machine: one seed a core on CPUs, all seeds at once on accelerators."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from umdqn.agents import AgentState
from umdqn.loops.compiled import CompiledLoop, LoopState, Progress
from umdqn.loops.snapshot import Restored, Snapshot

T = TypeVar("T")


class Lanes:
    """Several seeds of one loop, advanced together.

    On a CPU every seed runs the same single-seed program, spread over the cores: a seed's bits do
    not depend on which other seeds run beside it. On an accelerator the seeds are batched.
    """

    def __init__(self, loop: CompiledLoop, seeds: Sequence[int], devices: Sequence[jax.Device]):
        self.seeds, self._loop = tuple(seeds), loop
        batched = devices[0].platform != "cpu"
        self._groups = [self.seeds] if batched else [(seed,) for seed in self.seeds]
        self._devices = [devices[i % len(devices)] for i in range(len(self._groups))]
        init = jax.jit(jax.vmap(loop.init) if batched else loop.init)
        chunk = jax.vmap(loop.chunk, in_axes=(0, None)) if batched else loop.chunk
        self._chunk = jax.jit(chunk, donate_argnums=0)
        self._batched = batched
        self._pool = ThreadPoolExecutor(max_workers=len(devices))
        self._queues = [
            [group for group, device in enumerate(self._devices) if device == own]
            for own in dict.fromkeys(self._devices)
        ]
        self._states = [
            jax.device_put(init(self._keys(group)), device)
            for group, device in zip(self._groups, self._devices, strict=True)
        ]

    def _keys(self, group: tuple[int, ...]) -> jax.Array:
        keys = jnp.stack([jax.random.key(seed) for seed in group])
        return keys if self._batched else keys[0]

    def advance(self, steps: int) -> list[Progress]:
        """Take `steps` steps with every seed; what happened, one report a seed."""

        def work(queue: list[int]) -> dict[int, Progress]:
            reports = {}
            for group in queue:
                self._states[group], report = self._chunk(self._states[group], np.int32(steps))
                reports[group] = jax.device_get(report)
            return reports

        done: dict[int, Progress] = {}
        for reports in self._pool.map(work, self._queues):
            done.update(reports)
        return [
            report
            for group in range(len(self._groups))
            for report in self._split(done[group], len(self._groups[group]))
        ]

    def states(self) -> list[LoopState]:
        """The state of every seed."""
        return [
            state
            for group, members in zip(self._states, self._groups, strict=True)
            for state in self._split(group, len(members))
        ]

    def snapshots(self) -> list[Snapshot]:
        """Every seed as files can keep it."""
        return [self._loop.snapshot(state) for state in self.states()]

    def restore(self, restored: Sequence[Restored], where: str) -> None:
        """Go on from snapshots, one a seed."""
        states = [self._loop.restore(one, where) for one in restored]
        if self._batched:
            states = [jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)]
        self._states = [
            jax.device_put(state, device)
            for state, device in zip(states, self._devices, strict=True)
        ]

    def agents(self) -> list[AgentState]:
        """What every seed has learned."""
        return [state.agent for state in self.states()]

    def _split(self, tree: T, members: int) -> list[T]:
        if not self._batched:
            return [tree]
        return [jax.tree.map(lambda leaf, i=i: leaf[i], tree) for i in range(members)]

    def close(self) -> None:
        """Let the worker threads go."""
        self._pool.shutdown()
