"""Damage to a run is named, and what is sound goes on."""

import errno
import os
import shutil
import signal
from pathlib import Path

import pytest

import umdqn
from umdqn.cli.main import main
from umdqn.errors import Notice, UmdqnError
from umdqn.runs import files
from umdqn.runs.callbacks import Callback
from umdqn.runs.configure import configure
from umdqn.runs.directory import RunDirectory
from umdqn.runs.files import read_sealed, write_sealed
from umdqn.runs.policy_names import policy_name
from umdqn.runs.run import load
from umdqn.runs.start import resume, train_config, train_once
from witness import SMALL, digest


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of 1,000 steps, and the checksums of one of 1,200."""
    path = tmp_path_factory.mktemp("runs")
    short = train_config(configure("grid-world", "dqn", overrides=SMALL), path / "short")
    longer = configure("grid-world", "dqn", overrides=SMALL | {"steps": 1_200})
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
    with pytest.warns(Notice, match=rf"{path.name}.*step 800 is used instead"):
        again = resume(run.path, steps=1_200)
    assert digest(again) == finished[1]


def test_a_checkpoint_that_is_gone_is_announced(run):
    """The manifest tells of it: an older one is never used in silence."""
    (run.path / FILES["index"]).unlink()
    gone = rf"{FILES['index']} is missing"
    with pytest.warns(Notice, match=f"{gone}; the checkpoint of step 800 is used instead"):
        assert load(run.path).step == 800
    best = pytest.raises(UmdqnError, match="has no evaluation at a checkpoint")
    with best, pytest.warns(Notice, match=f"{gone}; the best of the other checkpoints is used"):
        load(run.path, "best")
    with pytest.warns(Notice, match=f"{gone}; the policy of step 800 is followed"):
        assert policy_name(run.path) == f"{run.path.resolve()}@800"


def test_metrics_that_go_on_after_the_end_are_refused(run):
    path = run.path / "metrics.jsonl"
    sound = path.read_bytes()
    more = b'{"step": 1250, "seed": 0, "return_mean": 1.0}\n'
    for longer in (sound + sound, sound + more, sound + b"{"):
        path.write_bytes(longer)
        with pytest.raises(UmdqnError, match="has lines after the end of the run"):
            run.directory.read_metrics()
    # Of a run that was killed, lines may be newer than the manifest; none of them comes twice.
    manifest = run.path / "manifest.json"
    write_sealed(manifest, read_sealed(manifest) | {"status": "running"})
    path.write_bytes(sound + more)
    assert run.directory.read_metrics()[-1]["step"] == 1_250
    path.write_bytes(sound + sound)
    with pytest.raises(UmdqnError, match=r"corrupt: line \d+ comes twice"):
        run.directory.read_metrics()


def test_damaged_metrics_are_named(run, finished):
    path = run.path / "metrics.jsonl"
    sound = path.read_bytes()
    # The evaluation at step 1,000 came after the checkpoint of step 800.
    path.write_bytes(sound[:-3] + b"7}\n")
    with pytest.raises(UmdqnError, match=r"metrics\.jsonl is corrupt: its checksum is wrong"):
        load(run.path, "best")
    with pytest.warns(Notice, match=r"metrics\.jsonl is corrupt.*step 800 is used instead"):
        again = resume(run.path, steps=1_200)
    assert digest(again) == finished[1]
    for damaged in (b"\xff" + path.read_bytes()[1:], path.read_bytes()[:100], b"5\n"):
        path.write_bytes(damaged)
        with pytest.raises(UmdqnError, match=r"metrics\.jsonl is corrupt"):
            resume(run.path, steps=1_400)
        with pytest.raises(UmdqnError, match=r"metrics\.jsonl is corrupt"):
            run.directory.read_metrics()


@pytest.mark.parametrize("told", [True, False])
def test_a_longer_run_that_ends_early_is_still_to_be_longer(run, finished, monkeypatch, told):
    """Between two checkpoints, by an error or by a kill that nobody could write down."""

    class Crash(Callback):
        def on_chunk(self, report):
            if report.step == 1_100:
                raise KeyboardInterrupt

    if not told:
        monkeypatch.setattr(RunDirectory, "fail", lambda directory, reason: None)
    with pytest.raises(KeyboardInterrupt):
        resume(run.path, steps=1_200, callbacks=[Crash()])
    config, _, manifest = run.directory.read_manifest()
    assert (config.steps, manifest["step"]) == (1_200, 1_000)
    assert manifest["status"] == ("failed" if told else "running")
    assert digest(resume(run.path)) == finished[1]


def test_damage_to_an_older_checkpoint_stops_nothing(run, finished):
    flip(run.path / "checkpoints/0000000800.json")
    assert digest(resume(run.path, steps=1_200)) == finished[1]


def full_disk_at(monkeypatch, name):
    """A file of this name cannot be written."""
    sync = os.fsync

    def full(descriptor):
        # The file goes by another name as long as it is not whole.
        if name in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", full)


@pytest.mark.parametrize("file", FILES)
def test_a_full_disk_leaves_the_checkpoint_before(finished, tmp_path, monkeypatch, file):
    target = FILES[file].replace("0000001000", "0000000600")

    full_disk_at(monkeypatch, Path(target).name)
    path = tmp_path / "run"
    with pytest.raises(UmdqnError, match=f"{target}: No space left on device"):
        train_config(configure("grid-world", "dqn", overrides=SMALL), path)
    assert load(path).step == 400
    monkeypatch.undo()
    again = resume(path)
    assert digest(again) == digest(finished[0])
    # What the failed checkpoint left behind is gone.
    known = {*(run_file.name for run_file in finished[0].path.rglob("*"))}
    assert {found.name for found in path.rglob("*")} <= known


@pytest.mark.parametrize(
    ("name", "again"),
    [("manifest.json", train_once), ("0000000000.json", lambda config, path: resume(path))],
)
def test_a_full_disk_at_the_start_stops_no_later_start(
    finished, tmp_path, monkeypatch, name, again
):
    config, path = finished[0].config, tmp_path / "run"
    full_disk_at(monkeypatch, name)
    with pytest.raises(UmdqnError, match=f"cannot write .*{name}: No space left on device"):
        train_config(config, path)
    monkeypatch.undo()
    assert digest(again(config, path)) == digest(finished[0])
    assert not list(path.rglob(".*"))


def test_what_a_start_leaves_counts_as_nothing(finished, tmp_path):
    """Killed while it wrote its manifest."""
    path = tmp_path / "run"
    for folder in ("checkpoints", "replay"):
        (path / folder).mkdir(parents=True)
    (path / "metrics.jsonl").touch()
    (path / ".manifest.json.k3_x9abc.umdqn-partial").write_text("{")
    assert digest(train_config(finished[0].config, path)) == digest(finished[0])
    assert not list(path.rglob(".*"))


def test_all_else_is_left_alone(tmp_path):
    config = configure("grid-world", "dqn", overrides=SMALL)
    linked = tmp_path / "linked"
    linked.mkdir()
    names = ("metrics.jsonl", "checkpoints/a.txt", "replay", "notes.txt", ".manifest.json.swp")
    for number, name in enumerate(names):
        path = tmp_path / str(number)
        (path / name).parent.mkdir(parents=True)
        (path / name).write_text("mine")
        with pytest.raises(UmdqnError, match="not empty, and a run never overwrites anything"):
            train_config(config, path)
        assert [p for p in path.rglob("*") if p.is_file()] == [path / name]
        assert (path / name).read_text() == "mine"
    path.joinpath(name).rename(linked / name)
    path.joinpath("checkpoints").symlink_to(linked)
    with pytest.raises(UmdqnError, match="not empty"):
        train_config(config, path)
    assert (linked / name).read_text() == "mine"


def test_of_two_that_start_in_one_directory_one_does(tmp_path):
    config = configure("grid-world", "dqn", overrides=SMALL)
    first, second = (RunDirectory.claim(config, tmp_path / "run") for _ in range(2))
    with first.locked():
        first.begin(config)
        with pytest.raises(UmdqnError, match="another process is training"), second.locked():
            pass
    with pytest.raises(UmdqnError, match="not empty"):
        second.begin(config)


def test_a_run_that_has_lost_its_checkpoints_keeps_the_rest(run):
    shutil.rmtree(run.path / "checkpoints")
    before = {p: p.read_bytes() for p in run.path.rglob("*") if p.is_file()}
    with pytest.raises(UmdqnError, match="has no checkpoint"):
        resume(run.path, steps=1_200)
    assert {p: p.read_bytes() for p in run.path.rglob("*") if p.is_file()} == before


def test_a_run_that_is_interrupted_at_a_checkpoint_goes_on(finished, tmp_path):
    """Saved twice at one step: because it was due, and because the user asked to stop."""

    class Interrupt(Callback):
        def on_chunk(self, report):
            if report.step == 400:
                signal.raise_signal(signal.SIGINT)

    config = configure("grid-world", "dqn", overrides=SMALL)
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
    read = files.open_regular

    def faulty(path, *flags):
        if path == newest:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read(path, *flags)

    monkeypatch.setattr(files, "open_regular", faulty)
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
    write_sealed(manifest, sound | {"environment": sound["environment"] | {"time_limit": 5}})
    with pytest.raises(UmdqnError, match="time_limit of environment 'grid-world' is 20, and was 5"):
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


def test_older_checkpoints_keep_what_was_learned(run):
    assert run.directory.checkpoints.steps() == [0, 200, 400, 600, 800, 1_000]
    assert load(run.path, 400).step == 400
    assert len(list((run.path / "checkpoints").glob("*.loop.safetensors"))) == 2
    with pytest.raises(UmdqnError, match="checkpoint = 401 is not allowed: last, best or one of"):
        load(run.path, 401)
    assert umdqn.load(run.path).step == 1_000
