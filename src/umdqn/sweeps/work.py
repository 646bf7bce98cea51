"""One job of a sweep, as its own process trains it."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from filelock import BaseFileLock, FileLock, Timeout

from umdqn.errors import Notice, UmdqnError, one_line, out_of_memory
from umdqn.loops.machine import keep_compiled_programs
from umdqn.parts.imports import allow
from umdqn.runs.callbacks import Callback, Report
from umdqn.runs.config import Config
from umdqn.runs.directory import RunDirectory
from umdqn.runs.files import Busy, check_folder, locked, write_bytes
from umdqn.runs.schemas import JobData, read_checked
from umdqn.runs.start import train_once
from umdqn.runs.trainer import Interrupted
from umdqn.runs.trust import imports_of
from umdqn.sweeps.plan import Job

# Seconds to wait for a process of a killed driver to end.
_PATIENCE = 60.0
_SECONDS_BETWEEN_NOTES = 1.0


class Outcome(NamedTuple):
    """How a training ended."""

    status: str
    """`finished`, `failed` (it would fail again), `interrupted`, or `lost` (its process died)."""
    reason: str = ""
    notes: tuple[str, ...] = ()
    """Notices of the training, for the user."""

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Outcome:
        """Return the outcome of JSON data."""
        return cls(**data)._replace(notes=tuple(data.get("notes", ())))


def failure(outcomes: Mapping[str, Outcome]) -> UmdqnError | None:
    """Return the error that lists the jobs which are not finished; None if all are."""
    failed = {name: end.reason for name, end in outcomes.items() if end.status != "finished"}
    if not failed:
        return None
    listed = "; ".join(f"{name} ({reason})" for name, reason in failed.items())
    return UmdqnError(f"{len(failed)} of {len(outcomes)} runs failed: {listed}")


class Place(NamedTuple):
    """Paths of a sweep."""

    root: Path

    @property
    def plan(self) -> Path:
        """The file of all jobs."""
        return self.root / "sweep.json"

    def job(self, name: str) -> Path:
        """The file of one job, which its process reads."""
        return self._folder("jobs") / f"{name}.json"

    def run(self, name: str) -> Path:
        """The run directory of a job."""
        path = self._folder("runs") / name
        check_folder(path)
        return path

    def begun(self, job: Job) -> bool:
        """Return whether a job has written anything."""
        return not RunDirectory(self.run(job.name)).vacant()

    def finished(self, job: Job) -> bool:
        """Return whether a job is finished."""
        return RunDirectory(self.run(job.name)).finished(job.config)

    def note(self, name: str) -> Path:
        """The progress of a job, for display only."""
        return self._folder("jobs") / f"{name}.progress"

    def _folder(self, name: str) -> Path:
        path = self.root / name
        check_folder(path)
        return path


class Note(Callback):
    """Writes the progress of a run to a file, for the display of the sweep."""

    def __init__(self, path: Path):
        self._path = path
        self._last = -float("inf")

    def on_start(self, path: Path, config: Config, step: int) -> None:
        self._write(step, None)

    def on_chunk(self, report: Report) -> None:
        if time.monotonic() - self._last >= _SECONDS_BETWEEN_NOTES:
            self._write(report.step, report.score)

    def on_evaluation(self, step: int, records: Sequence[dict[str, Any]]) -> None:
        self._write(step, sum(record["return_mean"] for record in records) / len(records))

    def _write(self, step: int, score: float | None) -> None:
        self._last = time.monotonic()
        # For display only: a full disk must not end the training for it.
        with contextlib.suppress(UmdqnError):
            note = json.dumps({"step": step, "score": score})
            write_bytes(self._path, note.encode(), durable=False)


def work(root: Path, name: str) -> Outcome:
    """Train a job, or the rest of it; return its outcome."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", Notice)
        outcome = _work(root, name)
    notes = [str(one.message) for one in caught if issubclass(one.category, Notice)]
    return outcome._replace(notes=tuple(notes))


def _work(root: Path, name: str) -> Outcome:
    place = Place(root)
    core = claim_core()
    try:
        job = _job(place, name)
        keep_compiled_programs()
        _train(job, place)
    except Interrupted as error:
        return Outcome("interrupted", str(error))
    except Busy as error:
        return Outcome("lost", str(error))
    except UmdqnError as error:
        return Outcome("failed", str(error))
    except MemoryError as error:
        return Outcome("failed", str(out_of_memory(error)))
    except Exception as error:
        # A bug of umdqn: one job fails, the others run.
        return Outcome("failed", one_line(error))
    finally:
        if core is not None:
            core.release()
    return Outcome("finished")


def _job(place: Place, name: str) -> Job:
    """Return the job of a name; its driver has just written it, as the user asked."""
    data = read_checked(place.job(name), JobData)
    allow(imports_of(data["config"]).values())
    return Job.from_json(data, place.job(name))


def claim_core() -> BaseFileLock | None:
    """Bind this process to one core that no other job on this machine uses.

    Returns the lock of the core, to be released afterwards; None if there is no free core or the
    system cannot bind processes. One core per job keeps jobs from competing, and keeps sums in
    compiled programs independent of the number of cores.
    """
    if not hasattr(os, "sched_setaffinity"):
        return None
    cores = sorted(os.sched_getaffinity(0))
    chosen, claim = cores[os.getpid() % len(cores)], None
    with contextlib.suppress(OSError):
        folder = _core_folder()
        for core in () if folder is None else cores:
            assert folder is not None
            lock = FileLock(folder / str(core), mode=0o600)
            try:
                lock.acquire(timeout=0)
            except Timeout:
                continue
            chosen, claim = core, lock
            break
    os.sched_setaffinity(0, {chosen})
    return claim


def _core_folder() -> Path | None:
    """Return the folder of this user's core locks; None if another user has made it."""
    user = os.getuid()
    folder = Path(tempfile.gettempdir()) / f"umdqn-cores-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    ours = folder.lstat().st_uid == user and not folder.is_symlink()
    return folder if ours else None


def _train(job: Job, place: Place) -> None:
    """Train a job; wait first for a process of a killed driver that may still train it."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            with locked(place.root / "jobs", f"{job.name}.lock"):
                train_once(job.config, place.run(job.name), [Note(place.note(job.name))])
            return
        except Busy:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def main() -> None:
    """Train the job that the command line names; print the outcome as the last line."""
    threading.Thread(target=_die_with_parent, daemon=True).start()
    outcome = work(Path(sys.argv[1]), sys.argv[2])
    print(json.dumps(outcome._asdict()), flush=True)
    # Without waiting for threads of libraries.
    os._exit(0)


def _die_with_parent() -> None:
    """Exit when the parent process ends, which closes the input of this one."""
    sys.stdin.buffer.read()
    os._exit(1)
