"""The host loop: environments run in Python, acting and learning are compiled."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

import jax
import numpy as np

from umdqn.agents import Agent, AgentState, EpsilonGreedy, ReplayConfig
from umdqn.envs import HostEnv, Position
from umdqn.loops.compiled import Progress, check_finite
from umdqn.loops.machine import keep_freed_memory
from umdqn.loops.memory import make_memory
from umdqn.loops.programs import Losses, Programs
from umdqn.loops.snapshot import Restored, Snapshot, from_words, random_words
from umdqn.types import notice

# Streams of randomness of one seed, apart from each other.
_ENVIRONMENT, _CHOICES = 0, 1


@dataclasses.dataclass(frozen=True)
class HostLoop:
    """Trains one agent on copies of an environment."""

    agent: Agent
    make: Callable[[int], HostEnv]
    exploration: EpsilonGreedy
    replay: ReplayConfig
    discount: float
    update_every: int
    truncation_terminates: bool
    copies: int = 1


class HostLanes:
    """Several seeds of a host loop, each in a thread of its own, as many at once as cores."""

    def __init__(self, loop: HostLoop, seeds: Sequence[int], devices: Sequence[jax.Device]):
        keep_freed_memory()
        programs = Programs(loop.agent)
        self.lanes = [
            _Lane(loop, seed, devices[i % len(devices)], programs) for i, seed in enumerate(seeds)
        ]
        self._pool = ThreadPoolExecutor(max_workers=len(devices))

    def advance(self, steps: int) -> list[Progress]:
        """Take `steps` steps with every seed; what happened, one report a seed."""
        futures = [self._pool.submit(lane.advance, steps) for lane in self.lanes]
        # All come to rest, also where one fails: nobody reads a state while it changes.
        wait(futures)
        return [future.result() for future in futures]

    def warm(self) -> None:
        """Take now what acting and learning will need of the machine."""
        # In the threads that will run them: threads keep memory of their own.
        list(self._pool.map(_Lane.warm, self.lanes))

    def agents(self) -> list[AgentState]:
        """What every seed has learned."""
        return [lane.state for lane in self.lanes]

    def snapshots(self) -> list[Snapshot]:
        """Every seed as files can keep it."""
        return [lane.snapshot() for lane in self.lanes]

    def restore(self, restored: Sequence[Restored], where: str) -> None:
        """Go on from snapshots, one a seed."""
        for lane, one in zip(self.lanes, restored, strict=True):
            lane.restore(one)

    def close(self) -> None:
        """Let threads and environments go."""
        self._pool.shutdown()
        for lane in self.lanes:
            lane.env.close()


class _Lane:
    """One seed: its environments, its memory and what it has learned."""

    def __init__(
        self,
        loop: HostLoop,
        seed: int,
        device: jax.Device,
        programs: Programs,
    ):
        self.loop, self._programs, self._device = loop, programs, device
        agent_key, _, run_key = jax.random.split(jax.random.key(seed), 3)
        state = jax.device_put(jax.jit(loop.agent.init)(agent_key), device)
        self._leaves = jax.tree.leaves(state)
        self._key = jax.device_put(run_key, device)
        self.env = loop.make(loop.copies)
        self.memory = make_memory(self.env.spec, loop.replay.capacity, loop.copies)
        self._random = np.random.default_rng([seed, _CHOICES])
        self._seed, self._step = seed, 0
        self._returns = np.zeros(loop.copies)
        self._observation: np.ndarray | None = None
        self._actions = np.zeros(loop.copies, np.int64)
        self._coins, self._drawn = np.zeros(loop.copies), self._actions
        self._target = 0

    @property
    def state(self) -> AgentState:
        """What the seed has learned."""
        return jax.tree.unflatten(self._programs.whole, self._leaves)

    def warm(self) -> None:
        """Compile and run acting and learning on blank data."""
        seen = self.env.spec.observation
        blank = np.zeros((self.loop.copies, *seen.shape), seen.dtype)
        self._programs.warm(self.state, self._key, blank, self.loop.replay.batch_size)

    def advance(self, steps: int) -> Progress:
        """Go on until `steps` more steps are taken; copies step together, so it may be a few more.

        What is more in one call is less in the next.
        """
        self._target += steps
        try:
            return self._advance()
        except BaseException:
            # Whoever goes on later takes these steps anew.
            self._target -= steps
            raise

    def _advance(self) -> Progress:
        losses = jax.device_put(Losses.none(), self._device)
        updates, episodes, total = 0, 0, 0.0
        if self._observation is None:
            self._observation = self._begin()
            self._actions = self._choose()
        first_update = int(self.state.updates)
        while self._step < self._target:
            ended = self._interact()
            # Actions are chosen before the update, which then runs while the environments step.
            self._actions = self._choose()
            if ended is not None:
                episodes += int(ended.sum())
                total += float(self._returns[ended].sum())
                self._returns[ended] = 0.0
            for _ in range(self._updates_due()):
                batch = self.memory.sample(self._random, self.loop.replay.batch_size)
                self._leaves, losses = self._programs.learn(self._leaves, losses, batch, self._key)
                updates += 1
        losses = jax.device_get(losses)
        bad = int(losses.first_bad)
        progress = Progress(
            episodes=np.asarray(episodes),
            returns=np.asarray(total, np.float32),
            updates=np.asarray(updates),
            loss=losses.total,
            first_bad_step=np.asarray(-1 if bad < 0 else self._step_of(bad, first_update, updates)),
        )
        return check_finite(self.state.params, self._step, progress)

    def snapshot(self) -> Snapshot:
        """The seed as files can keep it."""
        rest = {
            "counts": np.array([self._step, self._target]),
            "actions": self._actions,
            "coins": self._coins,
            "drawn": self._drawn,
            "returns": self._returns,
            "random": random_words(self._random),
        }
        if self._observation is not None:
            position = self.env.position()
            rest |= {
                "observation": self._observation,
                "seed": np.array(position.seed),
                "episodes": np.array(position.episodes),
                "lengths": np.array([len(done) for done in position.actions]),
                "done": np.array([a for done in position.actions for a in done], np.int64),
            }
        memory = self.memory
        row_bytes = memory.nbytes // sum(memory.room)
        return Snapshot(self.state, rest, memory.entered, memory.room, row_bytes, memory.rows)

    def restore(self, restored: Restored) -> None:
        """Go on from a snapshot."""
        rest = restored.rest
        self._leaves = jax.tree.leaves(jax.device_put(restored.agent, self._device))
        self._step, self._target = rest["counts"].tolist()
        self._actions, self._returns = rest["actions"].copy(), rest["returns"].copy()
        self._coins, self._drawn = rest["coins"].copy(), rest["drawn"].copy()
        self._random = from_words(rest["random"])
        self.memory.restore(restored.entered, restored.rows)
        if "observation" not in rest:
            return
        ends = np.cumsum(rest["lengths"])[:-1]
        done = tuple(tuple(part.tolist()) for part in np.split(rest["done"], ends))
        position = Position(int(rest["seed"]), tuple(rest["episodes"].tolist()), done)
        self._observation = self.env.go_to(position)
        if not np.array_equal(self._observation, rest["observation"]):
            notice(
                f"environment {self.env.spec.name!r} did not come back to where it was: its seeds "
                "do not determine it, and new episodes begin"
            )
            for copy in range(self.loop.copies):
                self._observation[copy] = self.env.restart(copy)
                self.memory.start(copy, self._observation[copy])
            self._returns[:] = 0.0
            self._actions = self._choose()

    def _step_of(self, update: int, first: int, updates: int) -> int:
        """The step at which an update of this chunk was made."""
        every = self.loop.update_every
        return self._step - self._step % every - (first + updates - 1 - update) * every

    def _begin(self) -> np.ndarray:
        observation = self.env.reset(_stream(self._seed, _ENVIRONMENT))
        for copy in range(self.loop.copies):
            self.memory.start(copy, observation[copy])
        return observation

    def _interact(self) -> np.ndarray | None:
        """One step of all copies, remembered; which episodes ended, if any did."""
        loop = self.loop
        actions = self._actions
        step = self.env.step(actions)
        done = step.terminated | step.truncated
        final = done if loop.truncation_terminates else step.terminated
        clip = self.env.spec.reward_clip
        rewards = step.reward if clip is None else np.clip(step.reward, -clip, clip)
        outcomes = zip(actions.tolist(), rewards.tolist(), final.tolist(), strict=True)
        for i, (action, reward, ends) in enumerate(outcomes):
            discount = 0.0 if ends else loop.discount
            self.memory.add(i, action, reward, discount, step.observation[i])
        self._observation = step.following
        self._returns += step.reward
        self._step += loop.copies
        if not done.any():
            return None
        for ended in np.flatnonzero(done).tolist():
            self.memory.start(ended, step.following[ended])
        return done

    def _choose(self) -> np.ndarray:
        """Epsilon-greedy actions; the network is not asked where all are random."""
        copies = self.loop.copies
        if self._step // copies % self.loop.exploration.repeat == 0:
            self._coins = self._random.random(copies)
            self._drawn = self._random.integers(0, self.env.spec.num_actions, copies)
        random = self._drawn
        since = self._step - self.loop.replay.warmup
        if since < 0:
            return random
        explores = self._coins < self.loop.exploration.epsilon_on_host(since)
        if explores.all():
            return random
        params = self._leaves[: self._programs.num_params]
        return np.where(explores, random, self._programs.act(params, self._observation))

    def _updates_due(self) -> int:
        """Updates that the last step of all copies makes due."""
        before = max(self._step - self.loop.copies, self.loop.replay.warmup)
        every = self.loop.update_every
        return max(self._step // every - before // every, 0)


def _stream(seed: int, stream: int) -> int:
    """A seed of its own for one of the streams of a seed."""
    return int(np.random.SeedSequence([seed, stream]).generate_state(1)[0])
