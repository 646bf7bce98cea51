"""Runs that were killed go on as if nothing had happened."""

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import umdqn
from umdqn.cli import main
from umdqn.runs import Callback, configure, load, resume, train_config
from umdqn.runs.directory import RunDirectory
from umdqn.runs.files import read_sealed, write_bytes, write_sealed
from umdqn.types import Notice, UmdqnError

SMALL = {
    "steps": 1_000,
    "replay.warmup": 100,
    "replay.capacity": 300,
    "evaluation.every": 250,
    "evaluation.episodes": 4,
    "checkpoint_every": 200,
    "chunk": 100,
    "seeds": 2,
    "torso": "8,8",
}
HOSTED = SMALL | {
    "loop": "host",
    "num_envs": 2,
    "representation.hidden": "8",
    "metric.points": 10,
    "representation.intervals": 10,
}


def digest(run) -> dict[str, str]:
    """Checksums of everything that the end of a run consists of."""
    path = run.path
    names = [
        "metrics.jsonl",
        f"checkpoints/{run.step:010d}.safetensors",
        f"checkpoints/{run.step:010d}.loop.safetensors",
        *(str(p.relative_to(path)) for p in sorted((path / "replay").iterdir())),
    ]
    return {name: hashlib.sha256((path / name).read_bytes()).hexdigest() for name in names}


class Stop(Exception):
    """Ends a training from outside, as a crash would."""


class CrashAt(Callback):
    def __init__(self, step):
        self.step = step

    def on_chunk(self, report):
        if report.step >= self.step:
            raise Stop


CASES = {
    "compiled": ("grid-world", "dqn", SMALL),
    "host": ("CartPole-v1", "umdqn-c", HOSTED),
    "frames": (
        "ALE/Pong",
        "dqn",
        {**SMALL, "loop": "host", "steps": 500, "evaluation.every": 1_000, "seeds": 1}
        | {"evaluation.episodes": 1, "evaluation.limit": 10, "replay.capacity": 90},
    ),
}


@pytest.mark.parametrize(
    "case", ["compiled", "host", pytest.param("frames", marks=pytest.mark.slow)]
)
def test_a_resumed_run_is_the_uninterrupted_one_bit_for_bit(case, tmp_path):
    env, agent, fields = CASES[case]
    config = configure(env, agent, overrides=fields)
    whole = train_config(config, tmp_path / "whole")
    path = tmp_path / "crashed"
    with pytest.raises(Stop):
        train_config(config, path, [CrashAt(250)])
    if case == "compiled":
        with pytest.raises(Stop):
            resume(path, callbacks=[CrashAt(430)])
    again = resume(path)
    assert again.step == whole.step
    assert digest(again) == digest(whole)
    assert again.manifest["status"] == "finished"


def test_a_longer_run_is_the_shorter_one_first(tmp_path):
    long = train_config(configure("grid-world", "dqn", overrides=SMALL), tmp_path / "long")
    short = configure("grid-world", "dqn", overrides=SMALL | {"steps": 600})
    train_config(short, tmp_path / "short")
    grown = resume(tmp_path / "short", steps=1_000)
    assert (
        digest(grown)["checkpoints/0000001000.safetensors"]
        == (digest(long)["checkpoints/0000001000.safetensors"])
    )
    assert grown.config.steps == 1_000
    with pytest.warns(Notice, match="is finished"):
        resume(tmp_path / "short")
    with pytest.raises(UmdqnError, match="steps = 500 is not allowed: at least 1000"):
        resume(tmp_path / "short", steps=500)


_TRAIN = """
import sys
from umdqn.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_run_that_is_killed_goes_on(tmp_path):
    """Kill -9 at random moments, also inside of a checkpoint write."""
    config = configure("grid-world", "dqn", overrides=SMALL | {"steps": 15_000, "seeds": 1})
    whole = train_config(config, tmp_path / "whole")
    path = tmp_path / "killed"
    random = np.random.default_rng(0)
    fields = SMALL | {"steps": 15_000, "seeds": 1}
    first = [part for name, value in fields.items() for part in (f"--{name}", str(value))]
    command = ["train", "grid-world", "dqn", "--out", str(path), *first]
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-c", _TRAIN, *command])
        seen = len(list(path.glob("checkpoints/*.json")))
        while process.poll() is None and len(list(path.glob("checkpoints/*.json"))) < seen + 3:
            time.sleep(0.02)
        time.sleep(random.uniform(0, 0.5))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        command = ["train", "--resume", str(path)]
    assert load(path).step < 15_000
    again = resume(path)
    assert digest(again) == digest(whole)
    assert not [p for p in path.rglob("*") if p.name.startswith(".")]


ONE = SMALL | {"seeds": 1}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of 1,000 steps, and the checksums of one of 1,200."""
    path = tmp_path_factory.mktemp("runs")
    short = train_config(configure("grid-world", "dqn", overrides=ONE), path / "short")
    longer = configure("grid-world", "dqn", overrides=ONE | {"steps": 1_200})
    return short, digest(train_config(longer, path / "longer"))


@pytest.fixture
def run(finished, tmp_path):
    """A copy of the run to damage."""
    shutil.copytree(finished[0].path, tmp_path / "run")
    return load(tmp_path / "run")


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGES = {
    "flip": flip,
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "remove": lambda path: path.unlink(),
}
FILES = {
    "index": "checkpoints/0000001000.json",
    "agent": "checkpoints/0000001000.safetensors",
    "loop": "checkpoints/0000001000.loop.safetensors",
    "replay": "replay/0-0000001000-0.safetensors",
}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(run, finished, file, damage):
    path = run.path / FILES[file]
    DAMAGES[damage](path)
    if (file, damage) == ("index", "remove"):
        # Without its index a checkpoint never was.
        again = resume(run.path, steps=1_200)
    else:
        with pytest.warns(Notice, match=rf"{path.name}.*step 800 is used instead"):
            again = resume(run.path, steps=1_200)
    assert digest(again) == finished[1]


def test_damage_to_an_older_checkpoint_stops_nothing(run, finished):
    flip(run.path / "checkpoints/0000000800.json")
    assert digest(resume(run.path, steps=1_200)) == finished[1]


@pytest.mark.parametrize("file", FILES)
def test_a_full_disk_leaves_the_checkpoint_before(finished, tmp_path, monkeypatch, file):
    target = FILES[file].replace("0000001000", "0000000600")

    def full(path, data):
        if str(path).endswith(target):
            raise UmdqnError(f"cannot write {path}: No space left on device")
        write_bytes(path, data)

    for module in ("checkpoints", "files"):
        monkeypatch.setattr(f"umdqn.runs.{module}.write_bytes", full)
    path = tmp_path / "run"
    with pytest.raises(UmdqnError, match=f"{target}: No space left on device"):
        train_config(configure("grid-world", "dqn", overrides=ONE), path)
    assert load(path).step == 400
    monkeypatch.undo()
    again = resume(path)
    assert digest(again) == digest(finished[0])
    # What the failed checkpoint left behind is gone.
    known = {*(run_file.name for run_file in finished[0].path.rglob("*"))}
    assert {found.name for found in path.rglob("*")} <= known


def test_a_run_that_is_interrupted_at_a_checkpoint_goes_on(finished, tmp_path):
    """Saved twice at one step: because it was due, and because the user asked to stop."""

    class Interrupt(Callback):
        def on_chunk(self, report):
            if report.step == 400:
                signal.raise_signal(signal.SIGINT)

    config = configure("grid-world", "dqn", overrides=ONE)
    with pytest.raises(UmdqnError, match="interrupted at step 400"):
        train_config(config, tmp_path / "run", [Interrupt()])
    assert digest(resume(tmp_path / "run")) == digest(finished[0])


def test_a_run_that_was_killed_before_it_said_so_is_finished(run, finished):
    manifest = run.path / "manifest.json"
    write_sealed(manifest, read_sealed(manifest) | {"status": "running"})
    assert resume(run.path).manifest["status"] == "finished"
    assert digest(load(run.path)) == digest(finished[0])
    assert digest(resume(run.path, steps=1_200)) == finished[1]


def test_what_cannot_be_read_is_not_given_up(run, finished, monkeypatch):
    """A fault of the file system is no damage: nothing is deleted, and the next try goes on."""
    newest = run.path / FILES["loop"]
    read = Path.read_bytes

    def faulty(path):
        if path == newest:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", faulty)
    with pytest.raises(UmdqnError, match=f"cannot read {newest}: Input/output error"):
        resume(run.path, steps=1_200)
    assert load(run.path).manifest["status"] == "finished"
    monkeypatch.undo()
    # Somebody's tools leave directories behind.
    (run.path / ".notes").mkdir()
    assert digest(resume(run.path, steps=1_200)) == finished[1]


def test_what_a_run_began_with_is_compared(run):
    manifest = run.path / "manifest.json"
    sound = read_sealed(manifest)
    write_sealed(manifest, sound | {"environment": sound["environment"] | {"num_actions": 5}})
    with pytest.raises(UmdqnError, match="num_actions of environment 'grid-world' is 4, and was 5"):
        resume(run.path, steps=1_200)
    write_sealed(manifest, sound | {"versions": sound["versions"] | {"jax": "0.1"}})
    with pytest.warns(Notice, match=r"other versions, not bit for bit: jax 0\.1 -> "):
        resume(run.path, steps=1_200)


def test_a_longer_schedule_is_said(run):
    manifest = run.path / "manifest.json"
    sound = read_sealed(manifest)
    optimiser = sound["config"]["optimiser"] | {"schedule": "cosine"}
    write_sealed(manifest, sound | {"config": sound["config"] | {"optimiser": optimiser}})
    message = "falls over 1,200 steps now, instead of 1,000"
    refused = "its arrays are not those of the manifest"
    with pytest.warns(Notice, match=message), pytest.raises(UmdqnError, match=refused):
        # The optimiser of a constant rate counts no steps, so that this one goes no further.
        resume(run.path, steps=1_200)


def test_one_run_is_not_resumed_twice_at_once(run):
    with (
        RunDirectory(run.path).locked(),
        pytest.raises(UmdqnError, match=f"another process is training in {run.path}"),
    ):
        resume(run.path, steps=2_000)


def test_only_steps_may_change(run, capsys):
    assert main(["train", "--resume", str(run.path), "--discount", "0.3"]) == 1
    assert "only --steps may change, not 'discount'" in capsys.readouterr().err
    assert main(["train", "grid-world", "--resume", str(run.path)]) == 1
    assert "not 'env'" in capsys.readouterr().err


def test_a_checkpoint_costs_the_same_however_long_the_run_is(tmp_path):
    fields = SMALL | {"seeds": 1, "steps": 3_000, "replay.capacity": 2_000}
    run = train_config(configure("grid-world", "dqn", overrides=fields), tmp_path / "run")
    pieces = sorted((run.path / "replay").iterdir())
    sizes = {path.stat().st_size for path in pieces}
    # 200 rows each, whatever the memory holds, and no more of them than it needs.
    assert max(sizes) - min(sizes) < 100
    assert len(pieces) <= 2_000 // 200 + 2
    index = json.loads((run.path / "checkpoints/0000003000.json").read_text())
    assert index["entered"] == {"0": [3_000]}


def test_older_checkpoints_keep_what_was_learned(run):
    assert run.directory.checkpoints.steps() == [0, 200, 400, 600, 800, 1_000]
    assert load(run.path, 400).step == 400
    assert len(list((run.path / "checkpoints").glob("*.loop.safetensors"))) == 2
    with pytest.raises(UmdqnError, match="checkpoint = 401 is not allowed: last, best or one of"):
        load(run.path, 401)
    assert umdqn.load(run.path).step == 1_000
