"""Checkpoints: the complete state of a run at one step, written atomically.

The index `checkpoints/STEP.json` lists the files of a checkpoint with sizes and checksums and is
written last. `STEP.safetensors` holds the agents, `STEP.loop.safetensors` environments, counters
and random states, and `replay/` the replay memories in small pieces. A checkpoint writes only the
rows that were added since the one before, so that its cost does not grow with the run.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import PyTree

from umdqn.errors import UmdqnError
from umdqn.loops.snapshot import Restored, Snapshot, from_named, named_agents, named_leaves
from umdqn.runs.fallback import newest_readable
from umdqn.runs.files import (
    Unreadable,
    check_folder,
    encode_arrays,
    is_temporary,
    read_arrays,
    write_arrays,
    write_sealed,
)
from umdqn.runs.schemas import Index, check_resumable, read_checked

_DIGITS = "[0-9]" * 10
# Files that may be deleted once no index lists them; others belong to the user.
_OURS = re.compile(rf"({_DIGITS}(\.loop)?|[0-9]+-{_DIGITS}-[0-9]+)\.safetensors")


class Checkpoints:
    """The checkpoints of one run directory."""

    def __init__(self, run: Path):
        self._run = run
        self._folder, self._replay = run / "checkpoints", run / "replay"
        self._pieces: dict[int, list[dict[str, Any]]] = {}
        self._saved: int | None = None
        """The step whose checkpoint is on disk and up to date."""

    def make(self) -> None:
        """Make the directories."""
        self._check_folders()
        self._folder.mkdir(exist_ok=True)
        self._replay.mkdir(exist_ok=True)

    def _check_folders(self) -> None:
        """Raise if a directory leads elsewhere: files there would be replaced and deleted."""
        check_folder(self._folder)
        check_folder(self._replay)

    def agent_path(self, step: int) -> Path:
        """Return the file with the agents at a step."""
        return self._folder / f"{step:010d}.safetensors"

    def _loop_path(self, step: int) -> Path:
        return self._folder / f"{step:010d}.loop.safetensors"

    def _index_path(self, step: int) -> Path:
        return self._folder / f"{step:010d}.json"

    def steps(self) -> list[int]:
        """Return the steps of all complete checkpoints in ascending order."""
        self._check_folders()
        return [int(path.stem) for path in sorted(self._folder.glob(f"{_DIGITS}.json"))]

    def save(
        self, step: int, snapshots: Mapping[int, Snapshot], trainer: dict[str, Any], keep: int
    ) -> None:
        """Save a checkpoint, once per step; the newest `keep` ones can be resumed from."""
        if step == self._saved:
            return
        files: dict[str, dict[str, Any]] = {}
        pieces = {
            seed: [
                *self._still_held(seed, snapshot),
                *self._new_pieces(step, seed, snapshot, files),
            ]
            for seed, snapshot in snapshots.items()
        }
        rest = {
            f"{seed}/{name}": array
            for seed, snapshot in snapshots.items()
            for name, array in snapshot.rest.items()
        }
        learned = named_agents({seed: snapshot.agent for seed, snapshot in snapshots.items()})
        self._write(self._loop_path(step), rest, files)
        self._write(self.agent_path(step), learned, files)
        index = {
            "step": step,
            "files": files | {piece["file"]: piece["sum"] for p in pieces.values() for piece in p},
            "replay": {str(seed): of_seed for seed, of_seed in pieces.items()},
            "entered": {str(seed): s.entered for seed, s in snapshots.items()},
            "trainer": trainer,
        }
        self._write_index(index)
        self._saved = step
        self._pieces = pieces
        self._prune(keep)

    def rehearse(self, snapshots: Iterable[Snapshot]) -> None:
        """Allocate the memory that saving takes, and free it."""
        for snapshot in snapshots:
            encode_arrays(named_agents({0: snapshot.agent}))
            full = snapshot._replace(entered=snapshot.room)
            _, rows = next(full.pieces([0] * len(full.room)))
            encode_arrays(rows)

    def save_agents(self, step: int, agents: Mapping[int, PyTree]) -> None:
        """Save the agents of a run that failed, unless the step has a complete checkpoint."""
        if step in self.steps() or not agents:
            return
        files: dict[str, dict[str, Any]] = {}
        self._write(self.agent_path(step), named_agents(agents), files)
        self._write_index({"step": step, "files": files, "replay": {}})

    def _write_index(self, index: dict[str, Any]) -> None:
        write_sealed(self._index_path(index["step"]), index)

    def _still_held(self, seed: int, snapshot: Snapshot) -> list[dict[str, Any]]:
        """Return the pieces with rows that the memory still holds."""
        oldest = [n - room for n, room in zip(snapshot.entered, snapshot.room, strict=True)]
        return [
            piece
            for piece in self._pieces.get(seed, [])
            if any(until > first for until, first in zip(piece["until"], oldest, strict=True))
        ]

    def _new_pieces(
        self, step: int, seed: int, snapshot: Snapshot, files: dict[str, dict[str, Any]]
    ) -> list[dict[str, Any]]:
        before = self._pieces.get(seed)
        since = before[-1]["until"] if before else [0] * len(snapshot.entered)
        found = []
        for number, (until, rows) in enumerate(snapshot.pieces(since)):
            path = self._replay / f"{seed}-{step:010d}-{number}.safetensors"
            self._write(path, rows, files)
            name = self._name(path)
            found.append({"file": name, "until": until, "sum": files[name]})
        return found

    def _write(
        self, path: Path, arrays: Mapping[str, np.ndarray], files: dict[str, dict[str, Any]]
    ) -> None:
        files[self._name(path)] = write_arrays(path, arrays)

    def _name(self, path: Path) -> str:
        return path.relative_to(self._run).as_posix()

    def _prune(self, keep: int) -> None:
        """Delete what only resuming from older checkpoints would need; their agents stay."""
        for step in self.steps()[:-keep]:
            self._loop_path(step).unlink(missing_ok=True)
        # An index that the system refuses to read may be sound: its pieces stay.
        with contextlib.suppress(Unreadable):
            self._drop_unknown(self._replay.iterdir(), self._needed(keep))

    def _needed(self, keep: int) -> set[str]:
        """Return the pieces that the newest checkpoints need; raises if one is `Unreadable`."""
        needed: set[str] = set()
        for step in self.steps()[-keep:]:
            try:
                of_seeds = self._index(step)["replay"].values()
            except Unreadable:
                raise
            except UmdqnError:
                continue
            needed |= {piece["file"] for of_seed in of_seeds for piece in of_seed}
        return needed

    def _drop_unknown(self, paths: Iterable[Path], known: set[str]) -> None:
        for path in list(paths):
            ours = _OURS.fullmatch(path.name) or is_temporary(path)
            if ours and self._name(path) not in known and not path.is_dir():
                path.unlink(missing_ok=True)

    def forget_after(self, step: int) -> None:
        """Delete checkpoints that are newer than a step."""
        self.forget(later for later in self.steps() if later > step)

    def forget(self, steps: Iterable[int]) -> None:
        """Delete checkpoints, beginning with their indices."""
        for step in steps:
            for path in (self._index_path(step), self._loop_path(step), self.agent_path(step)):
                path.unlink(missing_ok=True)

    def clean(self, keep: int) -> None:
        """Delete files that a crash left behind: those that no index lists."""
        known = self._needed(keep)
        for step in self.steps():
            whole = (self._index_path(step), self.agent_path(step), self._loop_path(step))
            known |= {self._name(path) for path in whole}
        self._drop_unknown([*self._folder.iterdir(), *self._replay.iterdir()], known)
        self._drop_unknown(filter(is_temporary, self._run.iterdir()), known)

    def _index(self, step: int) -> dict[str, Any]:
        path = self._index_path(step)
        index: Any = read_checked(path, Index)
        if index["step"] != step:
            raise UmdqnError(f"{path} is corrupt: it is the index of another step")
        return index

    def _read(self, path: Path, index: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Read the arrays of a file and verify its checksum."""
        if path.parent not in (self._folder, self._replay):
            raise UmdqnError(f"{path} is corrupt: it lies outside of {self._run}")
        known = index["files"].get(self._name(path))
        if known is None:
            raise UmdqnError(f"{path} is corrupt: it belongs to no checkpoint")
        return read_arrays(path, known)

    def agents(self, step: int, like: Mapping[int, PyTree], whole: bool = False) -> dict[int, Any]:
        """Read the arrays of `like` of every seed; `whole`: the agents have no others."""
        path = self.agent_path(step)
        arrays = self._read(path, self._index(step))
        expected = {f"{seed}{name}" for seed in like for name in named_leaves(like[seed])}
        if not expected <= set(arrays) or (whole and expected != set(arrays)):
            raise UmdqnError(f"{path} is corrupt: its arrays are not those of the manifest")
        return {
            seed: from_named(
                tree, {name: arrays[f"{seed}{name}"] for name in named_leaves(tree)}, str(path)
            )
            for seed, tree in like.items()
        }

    def restore(
        self, step: int, like: Mapping[int, PyTree]
    ) -> tuple[dict[int, Restored], dict[str, Any]]:
        """Read everything that resuming at a step needs."""
        index = self._index(step)
        trainer = check_resumable(index, list(like), self._index_path(step))
        agents = self.agents(step, like, whole=True)
        rest = self._read(self._loop_path(step), index)
        restored = {}
        for seed in like:
            prefix = f"{seed}/"
            pieces = index["replay"][str(seed)]
            for _ in self._read_pieces(pieces, index):
                # Verify all pieces before the first one is used.
                pass
            restored[seed] = Restored(
                agents[seed],
                {n.removeprefix(prefix): a for n, a in rest.items() if n.startswith(prefix)},
                index["entered"][str(seed)],
                self._read_pieces(pieces, index),
            )
            self._pieces[seed] = pieces
        self._saved = step
        return restored, trainer

    def _read_pieces(
        self, pieces: list[dict[str, Any]], index: Mapping[str, Any]
    ) -> Iterator[dict[str, np.ndarray]]:
        """Read the pieces of a memory one by one: all at once would take as much as the memory."""
        for piece in pieces:
            yield self._read(self._run / piece["file"], index)

    def newest(self, like: Mapping[int, PyTree], known: int) -> tuple[int, dict[int, PyTree]]:
        """Read the agents of the newest readable checkpoint.

        Notifies if a newer one is damaged, or gone: the run is known to have had one at a step.
        """
        return self._newest(lambda step: self.agents(step, like), known)

    def newest_whole(
        self, like: Mapping[int, PyTree], known: int, check: Callable[[dict[str, Any]], object]
    ) -> tuple[int, tuple[dict[int, Restored], dict[str, Any]]]:
        """Read the newest checkpoint that can be resumed; notifies as `newest` does.

        `check` gets what the trainer saved with it, and raises if the metrics do not match.
        """

        def read(step: int) -> tuple[dict[int, Restored], dict[str, Any]]:
            restored, trainer = self.restore(step, like)
            check(trainer)
            return restored, trainer

        return self._newest(read, known)

    def missing(self, known: int) -> UmdqnError | None:
        """Return the error for a checkpoint that the run is known to have had, if it is gone."""
        if known <= max(self.steps(), default=0):
            return None
        return UmdqnError(f"{self._index_path(known)} is missing")

    def _newest(self, read: Callable[[int], Any], known: int) -> tuple[int, Any]:
        steps = self.steps()
        if not steps:
            raise UmdqnError(f"{self._run} has no checkpoint yet")
        return newest_readable(steps, read, self.missing(known))
