"""Reading the newest checkpoint that can be read, and saying so where it is not the newest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from umdqn.errors import UmdqnError, notice
from umdqn.runs.files import Unreadable

T = TypeVar("T")


def newest_readable(
    steps: Sequence[int], read: Callable[[int], T], missing: UmdqnError | None
) -> tuple[int, T]:
    """Return the newest step that can be read and what was read.

    Notifies if newer ones are damaged, or if there is a newer one that is `missing`. Raises at once
    where the system refuses to read: that checkpoint may be sound.
    """
    first = missing
    for step in reversed(steps):
        try:
            found = read(step)
        except Unreadable:
            raise
        except UmdqnError as error:
            first = first or error
            continue
        if first is not None:
            notice(f"{first}; the checkpoint of step {step:,} is used instead")
        return step, found
    raise first or UmdqnError("there is no checkpoint")
