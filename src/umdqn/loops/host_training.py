"""Several seeds of the host loop, each in a thread of its own, as many at once as cores."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from umdqn.agents.state import AgentState
from umdqn.envs.positions import MOST_REPLAYED
from umdqn.errors import notice
from umdqn.exploration.exploration import Moment
from umdqn.loops.episodes import bootstrap_discount
from umdqn.loops.host import HostLoop, HostPrograms, host_programs
from umdqn.loops.host_arrays import check_seed, position_arrays, position_of
from umdqn.loops.loop import ExploreKeys, SeedKeys
from umdqn.loops.machine import available_cores, keep_freed_memory, named_exhaustion
from umdqn.loops.progress import Progress, check_finite
from umdqn.loops.snapshot import Restored, Snapshot, from_words, random_words
from umdqn.loops.training import finish_all
from umdqn.replay.rings import Rings
from umdqn.replay.transition import Batch, host_transition
from umdqn.specs import Key

# Streams of randomness of one seed, apart from each other.
_ENVIRONMENT, _BATCHES = 0, 1


class HostTraining:
    """Seeds of one host loop, advanced together."""

    def __init__(self, loop: HostLoop, seeds: Sequence[int]):
        keep_freed_memory()
        devices = jax.devices()
        programs = host_programs(loop.agent, loop.copies)
        self._pool = ThreadPoolExecutor(min(len(seeds), available_cores()))
        with named_exhaustion():
            self.seeds = [
                HostSeed(loop, seed, devices[i % len(devices)], programs)
                for i, seed in enumerate(seeds)
            ]

    def advance(self, steps: int) -> list[Progress]:
        """Take `steps` steps with every seed; return one report per seed."""
        with named_exhaustion():
            return finish_all(self._pool, lambda seed: seed.advance(steps), self.seeds)

    def warm(self) -> None:
        """Compile and run acting and learning, in the threads that will run them."""
        with named_exhaustion():
            list(self._pool.map(HostSeed.warm, self.seeds))

    def agents(self) -> list[AgentState]:
        """Return the agent of every seed."""
        return [seed.state for seed in self.seeds]

    def snapshots(self) -> list[Snapshot]:
        """Return every seed as files keep it."""
        return [seed.snapshot() for seed in self.seeds]

    def restore(self, restored: Sequence[Restored], where: str) -> None:
        """Continue from snapshots, one per seed."""
        for seed, one in zip(self.seeds, restored, strict=True):
            seed.restore(one, where)

    def close(self) -> None:
        """Release threads and environments."""
        self._pool.shutdown()
        for seed in self.seeds:
            seed.env.close()


class HostSeed:
    """One seed: its environments, its memory and its agent."""

    def __init__(self, loop: HostLoop, seed: int, device: jax.Device, programs: HostPrograms):
        self.loop, self._programs, self._device, self._seed = loop, programs, device, seed
        keys = SeedKeys.of(jax.random.key(seed))
        state = jax.device_put(jax.block_until_ready(programs.init(keys.agent)), device)
        self._leaves = jax.tree.leaves(state)
        self._key = jax.device_put(keys.run, device)
        self._explore_keys = jax.device_put(ExploreKeys.of(keys.explore), device)
        self.env = loop.make(loop.copies)
        self.memory: Rings = loop.memory.empty(np)
        self._random = np.random.default_rng([seed, _BATCHES])
        self._step, self._target = 0, 0
        self._returns = np.zeros(loop.copies)
        self._observation: np.ndarray | None = None
        self._actions = np.zeros(loop.copies, np.int64)
        self._followed = np.full(loop.copies, -1, np.int64)
        """What a fixed policy does in the current observations."""

    @property
    def state(self) -> AgentState:
        """The agent."""
        return jax.tree.unflatten(self._programs.structure, self._leaves)

    def warm(self) -> None:
        """Compile and run acting and learning on blank data."""
        seen = self.env.spec.observation
        blank = np.zeros((self.loop.copies, *seen.shape), seen.dtype)
        self._programs.warm(self.state, self._key, blank, self.loop.replay.batch_size)

    def advance(self, steps: int) -> Progress:
        """Continue until `steps` more steps are taken.

        Copies step together, so that it may be a few more; the next call takes as many fewer.
        """
        self._target += steps
        try:
            return self._advance()
        except BaseException:
            # The next call takes these steps again.
            self._target -= steps
            raise

    def _advance(self) -> Progress:
        loop = self.loop
        progress = jax.device_put(Progress.none(), self._device)
        episodes, total = 0, 0.0
        if self._observation is None:
            self._observation = self._begin()
            self._followed = self._follow(self._observation)
            self._actions = self._choose()
        while self._step < self._target:
            ended = self._interact()
            # Actions are chosen before the update, which then runs while the environments step.
            self._actions = self._choose()
            if ended.any():
                episodes += int(ended.sum())
                total += float(self._returns[ended].sum())
                self._returns[ended] = 0.0
            before = max(self._step - loop.copies, loop.replay.warmup)
            due = before + loop.steps_to_update(before)
            for _ in range(due, self._step + 1, loop.update_every):
                progress = self._learn(progress)
        # Wait first: reading the result of a program that failed would hang.
        progress = jax.device_get(jax.block_until_ready(progress))._replace(
            episodes=np.asarray(episodes), returns=np.asarray(total, np.float32)
        )
        return check_finite(self.state.params, self._step, progress)

    def _learn(self, progress: Progress) -> Progress:
        """Update once; return the progress with it."""

        def learn(batch: Batch) -> Any:
            step = np.int32(self._step)
            return self._programs.learn(self._leaves, progress, batch, step, self._key)

        self.memory, (self._leaves, progress) = self.loop.update(self.memory, self._random, learn)
        return progress

    def _begin(self) -> np.ndarray:
        observation = self.env.reset(_stream(self._seed, _ENVIRONMENT))
        for copy in range(self.loop.copies):
            self.memory = self.loop.memory.begin(self.memory, copy, observation[copy])
        return observation

    def _interact(self) -> np.ndarray:
        """Take one step of all copies and store it; return which episodes ended."""
        loop, seen = self.loop, self._observation
        assert seen is not None
        step = self.env.step(self._actions)
        discounts = bootstrap_discount(step, loop.discount, loop.truncation_terminates)
        rewards, last = loop.agent.spec.clipped(step.reward), step.last
        # Also after truncation: the target needs the policy's action in the final observation.
        followed = self._follow(step.observation, ~step.terminated)
        for copy in range(loop.copies):
            transition = host_transition(
                seen[copy],
                self._actions[copy],
                rewards[copy],
                discounts[copy],
                step.observation[copy],
                followed[copy],
            )
            self.memory = loop.memory.add(
                self.memory, copy, transition, last[copy], step.following[copy]
            )
        self._observation = step.following
        self._followed = np.where(last, self._follow(step.following, last), followed)
        self._returns += step.reward
        self._step += loop.copies
        return last

    def _follow(self, observations: np.ndarray, where: np.ndarray | None = None) -> np.ndarray:
        """Return the actions of a fixed policy, in some copies; -1 in others, or without one."""
        policy = self.loop.agent.policy
        rows = np.full(len(observations), policy is not None)
        rows = rows if where is None else rows & where
        actions = np.full(len(observations), -1, np.int64)
        if policy is not None and rows.any():
            actions[rows] = policy.choose(observations[rows])
        return actions

    def _choose(self) -> np.ndarray:
        """Choose the next actions of all copies."""
        loop, programs = self.loop, self._programs

        def act(moment: Moment, key: Key) -> Any:
            if loop.agent.policy is not None:
                return programs.follow(self._followed, moment, key)
            return programs.act(self._leaves, self._observation, moment, key)

        warm = self._step < loop.replay.warmup
        return np.asarray(loop.choose(self._step, warm, self._explore_keys, programs.random, act))

    def snapshot(self) -> Snapshot:
        """Return the seed as files keep it."""
        rest = {
            "counts": np.array([self._step, self._target]),
            "actions": self._actions,
            "returns": self._returns,
            "random": random_words(self._random),
        }
        if self._observation is not None:
            rest |= {"observation": self._observation, **position_arrays(self.env.position())}
        return Snapshot.of(self.state, rest, self.loop.memory, self.memory)

    def restore(self, restored: Restored, where: str) -> None:
        """Continue from a snapshot; `where` names its file in errors."""
        rest = restored.rest
        check_seed(rest, self.loop.copies, self.env.spec, where)
        self._leaves = jax.tree.leaves(jax.device_put(restored.agent, self._device))
        self._step, self._target = rest["counts"].tolist()
        self._actions, self._returns = rest["actions"].copy(), rest["returns"].copy()
        self._random = from_words(rest["random"])
        self.memory = self.loop.memory.restore(restored.entered, restored.rows)
        if "observation" not in rest:
            return
        position, before = position_of(rest), rest["observation"]
        self._observation = now = self.env.go_to(position)
        new = np.array([done is None for done in position.actions])
        if new.any():
            notice(
                f"environment {self.env.spec.name!r} was in an episode of more than "
                f"{MOST_REPLAYED:,} steps, which is not replayed: a new one begins"
            )
        if not np.array_equal(now[~new], before[~new]):
            notice(
                f"environment {self.env.spec.name!r} did not return to where it was: its seeds do "
                "not determine it, and new episodes begin"
            )
            for copy in np.flatnonzero(~new).tolist():
                now[copy] = self.env.restart(copy)
            new[:] = True
        if new.any():
            self._start_anew(now, new)

    def _start_anew(self, observation: np.ndarray, new: np.ndarray) -> None:
        """Continue from the first observations of new episodes of some copies."""
        for copy in np.flatnonzero(new).tolist():
            self.memory = self.loop.memory.begin(self.memory, copy, observation[copy])
        self._returns[new] = 0.0
        self._followed = self._follow(observation)
        # The other copies keep the actions that were chosen before the last update.
        self._actions = np.where(new, self._choose(), self._actions)


def _stream(seed: int, stream: int) -> int:
    """A seed of its own for one of the streams of a seed."""
    return int(np.random.SeedSequence([seed, stream]).generate_state(1)[0])
