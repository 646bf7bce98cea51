"""What both loops share: settings, streams of randomness, the warm-up rule, and an update."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import jax
from jaxtyping import Array, Float, Int

from umdqn.agents.agent import Agent
from umdqn.agents.state import AgentState
from umdqn.exploration.exploration import Moment
from umdqn.loops.progress import Progress
from umdqn.replay.memory import Memory
from umdqn.replay.replay import Replay
from umdqn.replay.rings import Random, Rings
from umdqn.replay.transition import Batch
from umdqn.specs import AnyArray, Key

T = TypeVar("T")
StepT = TypeVar("StepT", int, Int[Array, ""])

_WARM_STREAM = 2**31 - 1


class SeedKeys(NamedTuple):
    """Streams of randomness of one seed."""

    agent: Key
    """For first parameters."""
    env: Key
    """For the first episode of a compiled environment."""
    run: Key
    """For updates, and in the compiled loop for environments and batches, too."""
    explore: Key
    """For actions."""

    @classmethod
    def of(cls, key: Key) -> SeedKeys:
        """Split the key of a seed."""
        return cls(*jax.random.split(key, 4))


class ExploreKeys(NamedTuple):
    """Keys of actions. Warm-up has its own, because counts of choices restart when it ends."""

    warmup: Key
    training: Key

    @classmethod
    def of(cls, key: Key) -> ExploreKeys:
        """Return both keys of a seed's stream for actions."""
        return cls(jax.random.fold_in(key, _WARM_STREAM), key)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Loop(abc.ABC):
    """Trains one agent. Equal loops share their programs."""

    agent: Agent
    replay: Replay
    discount: float
    update_every: int
    truncation_terminates: bool

    @property
    @abc.abstractmethod
    def copies(self) -> int:
        """Copies of the environment per seed."""

    @abc.abstractmethod
    def _moment(self, step: Any) -> Moment:
        """Return the moment of a step, which is counted as `Moment` says."""

    @cached_property
    def memory(self) -> Memory:
        """The memory of one seed."""
        return self.replay.memory(self.agent.spec.observation, self.copies)

    def choose(
        self,
        step: StepT,
        warm: bool,
        keys: ExploreKeys,
        random: Callable[[Moment, Key], T],
        act: Callable[[Moment, Key], T],
    ) -> T:
        """Call `random` in warm-up and `act` afterwards; with a fixed policy always `act`."""
        moment = self._moment(step if warm else step - self.replay.warmup)
        key = keys.warmup if warm else keys.training
        return (random if warm and self.agent.policy is None else act)(moment, key)

    def steps_to_update(self, step: StepT) -> StepT:
        """Return how many steps it is to the next update, at or after the end of warm-up."""
        return self.update_every - step % self.update_every

    def update(
        self,
        rings: Rings,
        random: Random,
        learn: Callable[[Batch], tuple[T, Float[AnyArray, "batch"]]],
    ) -> tuple[Rings, T]:
        """Learn from one batch of the memory, and tell the memory the losses."""
        batch = self.memory.sample(rings, random)
        learned, losses = learn(batch)
        return self.memory.update(rings, batch.index, losses), learned


def learn_batch(
    agent: Agent, state: AgentState, progress: Progress, batch: Batch, step: Array, key: Key
) -> tuple[tuple[AgentState, Progress], Float[Array, "batch"]]:
    """Return state and progress after one update at a step, and the losses of its batch."""
    state, outcome = agent.learn(state, batch, key)
    return (state, progress.after_update(outcome, step)), outcome.losses
