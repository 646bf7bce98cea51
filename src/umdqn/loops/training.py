"""What every training offers, whichever loop it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, wait
from typing import Protocol, TypeVar, runtime_checkable

from umdqn.agents.state import AgentState
from umdqn.loops.progress import Progress
from umdqn.loops.snapshot import Restored, Snapshot

T = TypeVar("T")
R = TypeVar("R")


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


def finish_all(pool: Executor, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Return what `work` makes of each item, in the threads of a pool.

    Waits for all of them, also where one raises: nothing reads a state while it changes.
    """
    futures = [pool.submit(work, item) for item in items]
    wait(futures)
    return [future.result() for future in futures]
