"""What every training offers, whichever loop it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from umdqn.agents.state import AgentState
from umdqn.loops.progress import Progress
from umdqn.loops.snapshot import Restored, Snapshot


@runtime_checkable
class Training(Protocol):
    """All seeds of a run, advanced together."""

    def advance(self, steps: int) -> list[Progress]:
        """Take `steps` steps with every seed; return one report per seed."""
        ...

    def agents(self) -> list[AgentState]:
        """Return the agent of every seed."""
        ...

    def snapshots(self) -> list[Snapshot]:
        """Return every seed as files keep it."""
        ...

    def restore(self, restored: Sequence[Restored], where: str) -> None:
        """Continue from snapshots, one per seed; `where` names the file in errors."""
        ...

    def warm(self) -> None:
        """Compile, and take the memory that training needs, before training starts."""
        ...

    def close(self) -> None:
        """Release threads and environments."""
        ...
