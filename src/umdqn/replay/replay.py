"""What a replay is: settings that build a memory."""

from __future__ import annotations

import abc
import dataclasses

from umdqn.parts.part import Part
from umdqn.parts.ranges import Count
from umdqn.replay.memory import Memory
from umdqn.specs import Observation


@dataclasses.dataclass(frozen=True)
class Replay(Part, abc.ABC):
    """How much experience is kept, and how it is drawn."""

    capacity: Count = 10_000
    """Transitions kept; the oldest are replaced first."""
    batch_size: Count = 32
    """Transitions per update."""
    warmup: Count = 1_000
    """Steps of random actions before the first update."""
    n_step: Count = 1
    """Rewards that a transition sums up before the law of the state after them takes over; fewer
    where an episode ends before. Above 1, laws are partly those of the exploring policy."""

    @abc.abstractmethod
    def memory(self, observation: Observation, copies: int) -> Memory:
        """Return the memory for observations of so many copies of an environment."""
