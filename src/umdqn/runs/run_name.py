"""Names of checkpoints of runs, as policies to follow: `DIRECTORY@STEP`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from umdqn.parts.objects import PREFIX

_RUN = re.compile(r"(.+)@(\d+)")


class RunName(NamedTuple):
    """A checkpoint of a run."""

    path: Path
    step: int

    @classmethod
    def read(cls, name: str) -> RunName | None:
        """Return the checkpoint that a name means, or None if the name is of another kind."""
        found = None if name.startswith(PREFIX) else _RUN.fullmatch(name)
        return None if found is None else cls(Path(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.path}@{self.step}"
