"""Training under adverse conditions: no home directory, no reader of the output, hang-ups."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from umdqn.cli.main import main
from umdqn.folders import user_folder
from umdqn.runs.interrupts import deferred_interrupt
from umdqn.runs.run import load
from witness import SMALL, options

TRAIN = ["train", "grid-world", "dqn", *options(SMALL | {"steps": 400})]
# A user id without an entry, as containers assign it.
NOBODY = """
import os, sys
os.getuid = lambda: 543210
from umdqn.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_without_a_home_directory_training_goes_on_without_a_cache(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k not in ("HOME", "XDG_STATE_HOME")}
    done = subprocess.run(
        [sys.executable, "-c", NOBODY, *TRAIN, "--out", "run"],
        cwd=tmp_path,
        env=environment | {"XDG_CACHE_HOME": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    notes = [line for line in done.stderr.splitlines() if "home" in line or "cache" in line.lower()]
    assert notes == [
        "note: no home directory to cache compiled programs in: every process compiles them again "
        "(set XDG_CACHE_HOME to a directory)"
    ]
    assert load(tmp_path / "run").manifest["status"] == "finished"


@pytest.mark.parametrize(
    ("named", "home", "expected"),
    [
        ("{tmp}/cache", "/proc/nowhere", "cache/umdqn"),
        ("", "{tmp}/home", "home/.cache/umdqn"),
        # Not absolute: ignored, as the standard of these variables wants it.
        ("cache", "{tmp}/home", "home/.cache/umdqn"),
        ("", "/proc/nowhere", None),
        ("", "relative", None),
        ("/dev/null", "{tmp}/home", None),
    ],
)
def test_where_files_of_the_user_go(named, home, expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", named.format(tmp=tmp_path))
    monkeypatch.setenv("HOME", home.format(tmp=tmp_path))
    folder = user_folder("XDG_CACHE_HOME", ".cache")
    assert folder == (None if expected is None else tmp_path / expected)
    assert expected is None or folder.is_dir()
    assert not (tmp_path / "umdqn").exists()
    assert not (tmp_path / "relative").exists()


def test_a_reader_that_leaves_stops_nothing(tmp_path):
    """`umdqn train ... 2>&1 | head -1`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "umdqn", *TRAIN, "--out", str(tmp_path / "run")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    first = process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=300) == 0
    assert b"->" in first or b"note:" in first
    run = load(tmp_path / "run")
    assert (run.manifest["status"], run.step) == ("finished", 400)


def test_commands_that_print_end_quietly_without_a_reader(tmp_path):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "umdqn", "agents"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=120)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a full disk at hand")
def test_a_full_disk_is_not_a_reader_that_left(monkeypatch, capsys):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["agents"]) == 1
        monkeypatch.undo()
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())
    assert "No space left on device" in capsys.readouterr().err


def test_hang_ups_are_noted_unless_nohup_ignores_them():
    before = signal.getsignal(signal.SIGHUP)
    try:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        with deferred_interrupt() as asked:
            signal.raise_signal(signal.SIGHUP)
        assert asked.is_set()
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with deferred_interrupt() as asked:
            signal.raise_signal(signal.SIGHUP)
        assert not asked.is_set()
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
