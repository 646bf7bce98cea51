"""The directories that the page may read: run directories below what the user named, no links."""

from __future__ import annotations

import math
import os
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from umdqn.errors import UmdqnError

_MANIFEST = "manifest.json"
# Directories that one search looks into: enough for thousands of runs, bounded for `/`.
_MOST_DIRECTORIES = 40_000
_DEEPEST = 6
# Least seconds between two searches for new runs.
_PAUSE = 1.0


class NotFound(UmdqnError):
    """Something that a request names and that is not there."""


class Roots:
    """Finds runs, and resolves the files in them.

    Requests name runs by ids that a search has found, never by paths. Symbolic links below a root
    are neither followed nor read.
    """

    def __init__(self, paths: Sequence[Path]):
        self.paths = [_existing(path) for path in paths]
        self._runs: dict[str, Path] = {}
        self._searched = -math.inf
        self.complete = True
        """Whether the last search saw every directory."""

    def search(self) -> dict[str, Path]:
        """Search for runs and return their directories by id."""
        left, found = _MOST_DIRECTORIES, {}
        self.complete = True
        for root in self.paths:
            prefix = f"{root.name}/" if len(self.paths) > 1 else ""
            for directory in _directories(root):
                left -= 1
                if left < 0:
                    self.complete = False
                    break
                if _is_file(directory / _MANIFEST):
                    inner = directory.relative_to(root).as_posix()
                    name = prefix + (root.name if inner == "." else inner)
                    found[quote(os.fsencode(name), safe="/")] = directory
        self._runs, self._searched = found, time.monotonic()
        return found

    def run(self, name: str) -> Path:
        """Return the directory of a run's id; raise if no search has found it, or it is gone."""
        directory = self._runs.get(name)
        if directory is None and time.monotonic() - self._searched > _PAUSE:
            directory = self.search().get(name)
        if directory is None:
            raise NotFound(f"there is no run {name[:200]!r} here")
        try:
            self.file(directory, _MANIFEST)
        except NotFound:
            raise NotFound(f"{directory} is gone: it was moved or deleted") from None
        return directory

    def file(self, run: Path, *names: str) -> Path:
        """Return a file of a run that the page may read; raise if it is absent or a link."""
        path = run.joinpath(*names)
        root = next(root for root in self.paths if path.is_relative_to(root))
        place, mode = str(root), 0
        for part in path.parts[len(root.parts) :]:
            place = os.path.join(place, part)
            try:
                mode = os.lstat(place).st_mode
            except OSError as error:
                raise NotFound(f"cannot read {place}: {error.strerror}") from None
            if stat.S_ISLNK(mode):
                raise UmdqnError(f"{place} is a symbolic link, which is not followed")
        if not stat.S_ISREG(mode):
            raise UmdqnError(f"{path} is not a file")
        return path


def _existing(path: Path) -> Path:
    if not path.is_dir():
        what = "is not a directory" if path.exists() else "there is no such directory"
        raise UmdqnError(f"{path}: {what}; give a run, or a directory of runs")
    if not os.access(path, os.R_OK | os.X_OK):
        raise UmdqnError(f"{path}: not readable")
    return path.resolve()


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _directories(root: Path) -> Iterator[Path]:
    """Yield directories, nearest first; not those inside of runs, hidden ones, or links."""
    level = [root]
    for _ in range(_DEEPEST + 1):
        below: list[Path] = []
        for directory in level:
            yield directory
            if not _is_file(directory / _MANIFEST):
                below += _children(directory)
        level = below


def _children(directory: Path) -> list[Path]:
    try:
        with os.scandir(directory) as entries:
            names = sorted(
                entry.name
                for entry in entries
                if not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
            )
    except OSError:
        return []
    return [directory / name for name in names]
