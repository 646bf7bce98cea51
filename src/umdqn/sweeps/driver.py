"""Drive a sweep: train every job once, also if processes are killed in between."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from umdqn.errors import UmdqnError
from umdqn.parts.imports import allow
from umdqn.runs.directory import RunDirectory
from umdqn.runs.files import check_folder, locked, read_json, write_sealed
from umdqn.runs.interrupts import deferred_interrupt
from umdqn.runs.schemas import JobNote, Plan, read_checked, read_unsealed
from umdqn.runs.trainer import Interrupted
from umdqn.runs.trust import check_trust, imports_of, signed, trust_run
from umdqn.sweeps.plan import FORMAT, Job, Joined, joined
from umdqn.sweeps.pools import MakePool, Pool
from umdqn.sweeps.work import Outcome, Place

_FORMAT_VERSION = 3
_SECONDS_BETWEEN_LOOKS = 0.2
# A job fails when its process dies this often without a new checkpoint in between.
_LOSSES = 5


class Running(NamedTuple):
    """Progress of a job: its step, and the score of its last evaluation."""

    step: int
    score: float | None


class State(NamedTuple):
    """The current state of a sweep."""

    jobs: dict[str, Job]
    running: dict[str, Running]
    outcomes: dict[str, Outcome]


Show = Callable[[State], None]


def run_sweep(
    jobs: Sequence[Job], root: Path, make_pool: MakePool, show: Show = lambda state: None
) -> dict[str, Outcome]:
    """Train all jobs that are not finished in the directory; return the outcome of each.

    A job that fails does not stop the others. A job whose process dies is resumed from its last
    checkpoint. `show` is called several times a second with the state of the sweep.
    """
    _make(root)
    with locked(root):
        place = Place(root)
        plan, wanted = _joined(jobs, root)
        outcomes = {job.name: Outcome("finished") for job in wanted if place.finished(job)}
        todo = [job for job in wanted if job.name not in outcomes]
        if todo:
            # Before the plan is written: a pool that cannot start leaves no plan behind.
            pool = make_pool(root)
            try:
                pool.check([job.config for job in todo])
                _write_plan(place, plan, todo)
                _Drive(wanted, place, pool, show, outcomes).run(todo)
            finally:
                pool.close()
        show(State({job.name: job for job in wanted}, {}, outcomes))
        return outcomes


def _joined(jobs: Sequence[Job], root: Path) -> Joined:
    place = Place(root)
    before = read_plan(root) if place.plan.exists() else []
    return joined(before, jobs, root, place.begun)


def as_planned(jobs: Sequence[Job], root: Path) -> list[Job]:
    """Return the jobs with the names under which the sweep in a directory has started them."""
    return _joined(jobs, root).wanted


def _write_plan(place: Place, plan: Sequence[Job], todo: Sequence[Job]) -> None:
    data = [job.to_json() for job in plan]
    head = {"format": FORMAT, "format_version": _FORMAT_VERSION}
    write_sealed(place.plan, head | signed([job["config"] for job in data]) | {"jobs": data})
    for job in todo:
        write_sealed(place.job(job.name), job.to_json())


def read_plan(root: Path) -> list[Job]:
    """Return the jobs of the sweep in a directory."""
    path = Place(root).plan
    if not path.is_file():
        raise UmdqnError(f"{root} is not a sweep: it has no {path.name}")
    data = read_json(path)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise UmdqnError(f"{path} does not describe a umdqn sweep")
    if data.get("format_version") != _FORMAT_VERSION:
        found = data.get("format_version")
        raise UmdqnError(
            f"{path} has format version {found!r} and this umdqn reads {_FORMAT_VERSION}: "
            "train the sweep again in another directory"
        )
    sealed = read_checked(path, Plan)
    check_trust(root, [job["config"] for job in sealed["jobs"]], cast(dict[str, Any], sealed))
    return [Job.from_json(job, path) for job in sealed["jobs"]]


def _configs(plan: Any) -> list[dict[str, Any]]:
    """Return the configurations of a plan as JSON data, without those that are none."""
    jobs = plan.get("jobs") if isinstance(plan, dict) else None
    found = [job.get("config") for job in jobs if isinstance(job, dict)] if jobs else []
    return [config for config in found if isinstance(config, dict)]


def trust_sweep(root: Path) -> None:
    """Allow what the plan and the runs of a sweep name; a single run counts as one, too."""
    place = Place(root)
    if place.plan.exists():
        for config in _configs(read_json(place.plan)):
            allow(imports_of(config).values())
    for manifest in [*root.glob("manifest.json"), *root.glob("runs/*/manifest.json")]:
        trust_run(manifest.parent)


def _make(root: Path) -> None:
    """Create the directory of a sweep; raise if it holds anything else."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        # A driver that was killed at its start may have left some of these.
        names = {path.name for path in root.iterdir() if not path.name.startswith(".")}
        if names and "sweep.json" not in names and not names <= {"jobs", "runs", "lock"}:
            raise UmdqnError(f"--out {root}: not empty, and not a sweep")
        for name in ("jobs", "runs"):
            check_folder(root / name)
            (root / name).mkdir(exist_ok=True)
    except OSError as error:
        raise UmdqnError(f"--out {root}: cannot make it: {error.strerror}") from error


class _Drive:
    """Runs the jobs that are left on a pool."""

    def __init__(
        self,
        jobs: Sequence[Job],
        place: Place,
        pool: Pool,
        show: Show,
        outcomes: dict[str, Outcome],
    ):
        self._jobs = {job.name: job for job in jobs}
        self._place, self._pool, self._show, self._outcomes = place, pool, show, outcomes
        self._running: dict[str, Running] = {}
        self._losses: dict[str, tuple[int, int]] = {}

    def run(self, todo: Sequence[Job]) -> None:
        """Run jobs until all have ended."""
        waiting = deque(job.name for job in todo)
        with deferred_interrupt() as interrupted:
            while waiting or self._running:
                while waiting and self._pool.free and not interrupted.is_set():
                    name = waiting.popleft()
                    self._running[name] = Running(0, None)
                    self._pool.submit(name)
                for name, outcome in self._pool.ended().items():
                    del self._running[name]
                    gone = outcome.status in ("lost", "interrupted")
                    if gone and self._again(name, interrupted.is_set()):
                        waiting.appendleft(name)
                    else:
                        self._outcomes[name] = self._named(name, outcome)
                if interrupted.is_set():
                    self._stop()
                self._look()
                time.sleep(_SECONDS_BETWEEN_LOOKS)

    def _again(self, name: str, stopping: bool) -> bool:
        """Return whether to retry a lost job: it has a new checkpoint, or was rarely lost."""
        step = (RunDirectory(self._place.run(name)).checkpoints.steps() or [-1])[-1]
        before, count = self._losses.get(name, (-1, 0))
        self._losses[name] = (step, count + 1 if step == before else 1)
        return not stopping and self._losses[name][1] < _LOSSES

    def _named(self, name: str, outcome: Outcome) -> Outcome:
        if outcome.status not in ("lost", "interrupted"):
            return outcome
        step, count = self._losses[name]
        where = "before its first checkpoint" if step < 0 else f"after its checkpoint {step:,}"
        return Outcome("failed", f"lost {count} times {where}: {outcome.reason}")

    def _look(self) -> None:
        for name in self._running:
            try:
                note = read_unsealed(self._place.note(name), JobNote)
                self._running[name] = Running(note["step"], note["score"])
            except UmdqnError:
                continue
        self._show(State(self._jobs, dict(self._running), self._outcomes))

    def _stop(self) -> None:
        """Let all jobs write a checkpoint and stop."""
        self._pool.interrupt()
        while self._running:
            for name in self._pool.ended():
                del self._running[name]
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        raise Interrupted(f"interrupted; the same command resumes the sweep in {self._place.root}")
