"""Faults of the machine: clocks that jump, disks that are full, slow or read-only."""

import contextlib
import datetime
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from umdqn.errors import UmdqnError
from umdqn.runs.callbacks import Callback
from umdqn.runs.configure import configure
from umdqn.runs.directory import RunDirectory
from umdqn.runs.run import load
from umdqn.runs.start import resume, train_config
from umdqn.sweeps.driver import run_sweep
from umdqn.sweeps.plan import sweep_of
from umdqn.sweeps.pools import LocalPool
from umdqn.sweeps.results import collect
from witness import SMALL, digest, options

pytestmark = pytest.mark.filterwarnings("ignore::umdqn.errors.Notice")
CONFIG = configure("grid-world", "dqn", overrides=SMALL)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run without faults."""
    return digest(train_config(CONFIG, tmp_path_factory.mktemp("runs") / "whole"))


class Jumping(datetime.datetime):
    """A clock that shows any time between 1970 and 2100."""

    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(random.Random(time.perf_counter()).uniform(0, 4e9), tz)


class StopAt(Callback):
    def __init__(self, *steps):
        self.steps = steps

    def on_chunk(self, report):
        if report.step in self.steps:
            raise KeyboardInterrupt


def test_clocks_that_jump_change_nothing(whole, tmp_path, monkeypatch, attack):
    """Dates at random, and a clock for durations that stands still, or leaps either way."""
    counter = attack("clocks that jump")
    clocks = (lambda: 0.0, lambda: random.Random(time.perf_counter()).choice([1e3, 1e9]))
    for number, clock in enumerate(clocks):
        with counter.trial(), monkeypatch.context() as patch:
            patch.setattr(datetime, "datetime", Jumping)
            patch.setattr(time, "time", lambda: Jumping.now().timestamp())
            patch.setattr(time, "monotonic", clock)
            path = tmp_path / str(number)
            with pytest.raises(KeyboardInterrupt):
                train_config(CONFIG, path, [StopAt(500)])
            for file in path.rglob("*"):
                os.utime(file, (Jumping.now().timestamp(),) * 2)
            assert digest(resume(path)) == whole


def test_a_slow_disk_loses_nothing(whole, tmp_path, monkeypatch, attack):
    """Every flush takes long; the user asks to stop in the middle of a checkpoint."""
    sync, renamed = os.fsync, os.replace
    flushes = []

    def slow(descriptor):
        time.sleep(0.05)
        flushes.append(descriptor)
        if len(flushes) == 30:
            signal.raise_signal(signal.SIGTERM)
        sync(descriptor)

    def late(source, target):
        time.sleep(0.02)
        renamed(source, target)

    with attack("a slow disk").trial():
        monkeypatch.setattr(os, "fsync", slow)
        monkeypatch.setattr(os, "replace", late)
        with pytest.raises(UmdqnError, match="interrupted at step"):
            train_config(CONFIG, tmp_path / "run")
        assert digest(resume(tmp_path / "run")) == whole


class Frozen(Callback):
    """Refuses to write files from the chunk after a step on."""

    def __init__(self, step, monkeypatch):
        self.step, self.frozen = step, step == 0
        self.made, self.opened = tempfile.mkstemp, os.open
        monkeypatch.setattr(tempfile, "mkstemp", self.make)
        monkeypatch.setattr(os, "open", self.open)

    def on_chunk(self, report):
        self.frozen = report.step > self.step

    def make(self, *arguments, **keywords):
        return self._unless(True, self.made, *arguments, **keywords)

    def open(self, file, flags, *mode, **keywords):
        writes = bool(flags & (os.O_WRONLY | os.O_RDWR))
        return self._unless(writes, self.opened, file, flags, *mode, **keywords)

    def _unless(self, writes, function, *arguments, **keywords):
        if self.frozen and writes:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return function(*arguments, **keywords)


def test_a_file_system_that_becomes_read_only(whole, tmp_path, monkeypatch, attack):
    """One line; the run stays as it was and can be resumed elsewhere."""
    counter = attack("a file system that becomes read-only")
    for step in (0, 200, 700):
        path, elsewhere = tmp_path / str(step), tmp_path / f"{step} elsewhere"
        with counter.trial():
            with monkeypatch.context() as patch, pytest.raises(UmdqnError, match="Read-only file"):
                train_config(CONFIG, path, [Frozen(step, patch)])
            if step == 0:
                assert RunDirectory(path).vacant()
                continue
            before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
            shutil.copytree(path, elsewhere)
            assert digest(resume(elsewhere)) == whole
            assert {file: file.read_bytes() for file in before} == before


def _unshared():
    """Whether this process may mount file systems of its own."""
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]
    with contextlib.suppress(OSError):
        return subprocess.run(command, capture_output=True).returncode == 0
    return False


MOUNTED = """
mount -t tmpfs -o size=64k none "$1" && head -c 1000000 /dev/zero > "$1/rest" 2>/dev/null
shift; exec "$@"
"""


@pytest.mark.torture
@pytest.mark.skipif(not _unshared(), reason="this user cannot mount file systems")
def test_a_full_folder_for_temporary_files(tmp_path, attack):
    """A sweep of two runs while nothing can be written to /tmp: all finish, and none is lost."""
    counter = attack("/tmp is full, for a sweep")
    folder, out = tmp_path / "tmp", tmp_path / "out"
    folder.mkdir()
    program = (
        "import sys, tempfile; tempfile.tempdir = sys.argv.pop(1); "
        "from umdqn.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    sweep = ["sweep", "--env", "grid-world", "--agent", "dqn", "--seeds", "2"]
    sweep += ["--seeds-per-run", "1", "--out", str(out), *options(SMALL)]
    command = ["unshare", "-rm", "sh", "-c", MOUNTED, "sh", str(folder)]
    command += [sys.executable, "-c", program, str(folder), *sweep]
    with counter.trial():
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        # The processes of a sweep cannot say that they are done; the driver looks for itself.
        assert done.returncode == 0, done.stderr
        assert len(collect(out)) == 2 * 4


@pytest.mark.torture
@pytest.mark.skipif(not _unshared(), reason="this user cannot mount file systems")
@pytest.mark.parametrize("step", [200, 600])
def test_a_real_read_only_mount(step, tmp_path, attack):
    """Reading works there, and training says in one line that it cannot."""
    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train_config(CONFIG, path, [StopAt(step + 100)])
    mount = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
    base = ["unshare", "-rm", "sh", "-c", mount, "sh", str(path)]
    base += [sys.executable, "-m", "umdqn"]
    counter = attack("a run on a read-only mount")
    for command in (["train", "--resume", str(path)], ["evaluate", str(path), "--episodes", "2"]):
        with counter.trial():
            done = subprocess.run([*base, *command], capture_output=True, text=True, timeout=600)
            assert "Traceback" not in done.stderr
            if command[0] == "train":
                assert done.returncode == 1
                assert "Read-only file system" in done.stderr
                assert done.stderr.rstrip().splitlines()[-1].startswith("umdqn: ")
            else:
                assert done.returncode == 0, done.stderr
    assert load(path).step == step


TWO = {
    "env": "grid-world",
    "agent": "dqn",
    "seeds": 2,
    "seeds_per_run": 1,
    "fields": SMALL | {"steps": 300},
}


@pytest.mark.torture
def test_times_of_files_do_not_matter_to_a_sweep(tmp_path, attack):
    """Dates of files before 1980 and after 2100: nothing is trained again, nothing is lost."""
    counter = attack("clocks that jump")
    jobs = sweep_of(TWO).jobs()
    run_sweep(jobs[:1], tmp_path / "out", LocalPool)
    first = Path(tmp_path / "out" / "runs" / jobs[0].name / "metrics.jsonl").read_bytes()
    for year in (0, 4e9):
        with counter.trial():
            for file in (tmp_path / "out").rglob("*"):
                os.utime(file, (year, year))
            run_sweep(jobs, tmp_path / "out", LocalPool)
            assert len(collect(tmp_path / "out")) == 2 * 2
    assert (tmp_path / "out" / "runs" / jobs[0].name / "metrics.jsonl").read_bytes() == first
