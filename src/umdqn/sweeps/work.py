"""One training of a sweep, as a process of its own does it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from umdqn.loops import keep_compiled_programs
from umdqn.runs import Callback, Config, Interrupted, Report, RunDirectory, train_once
from umdqn.runs.files import Busy, locked, read_sealed
from umdqn.sweeps.plan import Job
from umdqn.types import Notice, UmdqnError, one_line

# How long the process of a driver that was killed may take to go.
_PATIENCE = 60.0
_SECONDS_BETWEEN_NOTES = 1.0


class Outcome(NamedTuple):
    """How a training ended."""

    status: str
    """`finished`, `failed` (it would fail again), `interrupted`, or `lost` (its process died)."""
    reason: str = ""
    notes: tuple[str, ...] = ()
    """What the user should know of it all the same."""

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Outcome:
        """The outcome of data."""
        return cls(**data)._replace(notes=tuple(data.get("notes", ())))


class Place(NamedTuple):
    """Where a sweep keeps a job."""

    root: Path

    @property
    def plan(self) -> Path:
        """All jobs."""
        return self.root / "sweep.json"

    def job(self, name: str) -> Path:
        """What is to be done."""
        return self.root / "jobs" / f"{name}.json"

    def run(self, name: str) -> Path:
        """The run directory."""
        return self.root / "runs" / name

    def begun(self, job: Job) -> bool:
        """Whether anything of a job is there."""
        return not RunDirectory(self.run(job.name)).vacant()

    def finished(self, job: Job) -> bool:
        """Whether there is nothing left to do of a job."""
        return RunDirectory(self.run(job.name)).finished(job.config)

    def note(self, name: str) -> Path:
        """How far it has come; lost without harm."""
        return self.root / "jobs" / f"{name}.progress"


class Note(Callback):
    """Writes down how far a run has come, for whoever shows the sweep."""

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
        temporary = self._path.with_suffix(".new")
        temporary.write_text(json.dumps({"step": step, "score": score}))
        os.replace(temporary, self._path)


def work(root: Path, name: str) -> Outcome:
    """Do a job, or what is left of it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", Notice)
        outcome = _work(root, name)
    notes = [str(one.message) for one in caught if issubclass(one.category, Notice)]
    return outcome._replace(notes=tuple(notes))


def _work(root: Path, name: str) -> Outcome:
    place = Place(root)
    core = claim_core()
    try:
        job = Job.from_json(read_sealed(place.job(name)), place.job(name))
        keep_compiled_programs()
        _train(job, place)
    except Interrupted as error:
        return Outcome("interrupted", str(error))
    except Busy as error:
        return Outcome("lost", str(error))
    except UmdqnError as error:
        return Outcome("failed", str(error))
    except MemoryError:
        return Outcome("failed", "out of memory")
    except Exception as error:
        # A mistake of ours; the sweep goes on without it.
        return Outcome("failed", one_line(error))
    finally:
        if core is not None:
            core.close()
    return Outcome("finished")


def claim_core() -> IO[bytes] | None:
    """Run on one core that no other job of this machine has, until the file returned is closed.

    Jobs side by side do not get in each other's way, and the sums of compiled programs do not
    depend on how many cores there are.
    """
    if not hasattr(os, "sched_setaffinity"):
        return None
    folder = Path(tempfile.gettempdir()) / f"umdqn-cores-{os.getuid()}"
    cores = sorted(os.sched_getaffinity(0))
    claim: IO[bytes] | None = None
    chosen = cores[os.getpid() % len(cores)]
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        # Others may write beside it: a folder, or a link, of theirs is not ours to follow.
        ours = folder.lstat().st_uid == os.getuid() and not folder.is_symlink()
        for core in cores if ours else ():
            flags = os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW
            claim = os.fdopen(os.open(folder / str(core), flags, 0o600), "wb")
            try:
                fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                claim.close()
                claim = None
                continue
            chosen = core
            break
    os.sched_setaffinity(0, {chosen})
    return claim


def _train(job: Job, place: Place) -> None:
    """Train once nobody else does: a process whose driver was killed may still be there."""
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
    """Do the job that the command line names; the outcome is the last line of the output."""
    threading.Thread(target=_die_with_parent, daemon=True).start()
    outcome = work(Path(sys.argv[1]), sys.argv[2])
    print(json.dumps(outcome._asdict()), flush=True)
    # Threads of libraries have nothing more to say.
    os._exit(0)


def _die_with_parent() -> None:
    """Whoever started this process holds the other end of its input."""
    sys.stdin.buffer.read()
    os._exit(1)
