"""A run from a stranger leads nowhere: links and pipes are refused, nothing else is touched."""

import os
import shutil
import signal

import pytest

from umdqn.cli.main import main
from umdqn.errors import UmdqnError
from umdqn.runs.configure import configure
from umdqn.runs.directory import RunDirectory
from umdqn.runs.files import locked
from umdqn.runs.run import load
from umdqn.runs.start import resume, train_config
from umdqn.sweeps.work import Note, Place
from witness import SMALL


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    config = configure("grid-world", "dqn", overrides=SMALL | {"steps": 400})
    return train_config(config, tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def run(finished, tmp_path):
    """A copy of the run to prepare, as a stranger would."""
    shutil.copytree(finished.path, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture(autouse=True)
def watchdog():
    """A pipe that is opened for reading would never answer."""

    def late(number, frame):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("name", ["lock", "metrics.jsonl", "manifest.json"])
@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "directory"])
def test_files_that_are_none_are_refused(run, tmp_path, capsys, name, kind):
    victim = tmp_path / "thesis.tex"
    place = {
        "link": lambda path: path.symlink_to(victim),
        "dangling link": lambda path: path.symlink_to(tmp_path / "nowhere"),
        "pipe": os.mkfifo,
        "directory": os.mkdir,
    }[kind]
    victim.write_text("years of work")
    (run / name).unlink()
    place(run / name)
    assert main(["train", "--resume", str(run), "--steps", "500"]) == 1
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert str(run) in printed
    assert "Traceback" not in printed
    assert victim.read_text() == "years of work"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", ["checkpoints", "replay"])
def test_directories_that_lead_elsewhere_are_refused(run, tmp_path, capsys, name):
    """Pruning would delete what has the names of checkpoints: those of another run."""
    other = tmp_path / "other"
    shutil.move(run / name, other)
    (run / name).symlink_to(other)
    before = sorted(path.name for path in other.iterdir())
    for command in (["train", "--resume", str(run), "--steps", "500"], ["evaluate", str(run)]):
        assert main(command) == 1
        assert f"{run / name} is a symbolic link: what is in a run" in capsys.readouterr().err
    assert sorted(path.name for path in other.iterdir()) == before


def test_a_checkpoint_that_leads_elsewhere_is_not_read(run, tmp_path, recwarn):
    newest = run / "checkpoints" / "0000000400.safetensors"
    newest.rename(tmp_path / "elsewhere")
    newest.symlink_to(tmp_path / "elsewhere")
    assert load(run).step == 200
    assert f"{newest} is a symbolic link" in str(recwarn.pop().message)


def test_other_names_of_a_file_keep_their_content(run, tmp_path):
    """A hard link, as backups make them: the run goes on in files of its own."""
    backup = tmp_path / "metrics.jsonl"
    os.link(run / "metrics.jsonl", backup)
    before = backup.read_bytes()
    resume(run, steps=600)
    assert backup.read_bytes() == before
    assert (run / "metrics.jsonl").read_bytes().startswith(before)


def test_a_directory_may_be_named_by_a_link(run, tmp_path):
    """The user's own choice; both names are one directory, with one lock."""
    (tmp_path / "latest").symlink_to(run)
    assert load(tmp_path / "latest").step == 400
    with (
        RunDirectory(run).locked(),
        pytest.raises(UmdqnError, match=r"another process is training in .*latest"),
    ):
        resume(tmp_path / "latest", steps=600)


def test_a_lock_is_never_emptied(tmp_path):
    (tmp_path / "lock").write_text("notes of another program")
    with locked(tmp_path):
        pass
    assert (tmp_path / "lock").read_text() == "notes of another program"


def test_sweeps_stay_in_their_directory(run, tmp_path, capsys):
    victim, root = tmp_path / "victim", tmp_path / "sweep"
    victim.write_text("mine")
    (root / "jobs").mkdir(parents=True)
    for name in ("one.progress", "one.new"):
        (root / "jobs" / name).symlink_to(victim)
    Note(Place(root).note("one")).on_start(run, configure("grid-world", "dqn"), 5)
    assert victim.read_text() == "mine"
    assert "5" in (root / "jobs" / "one.progress").read_text()
    (root / "runs").symlink_to(tmp_path)
    point = ["sweep", "--env", "grid-world", "--agent", "dqn", "--out", str(root)]
    assert main(point) == 1
    assert f"{root / 'runs'} is a symbolic link" in capsys.readouterr().err
    (root / "runs").unlink()
    (root / "runs").mkdir()
    (root / "runs" / "one").symlink_to(run)
    with pytest.raises(UmdqnError, match="one is a symbolic link"):
        Place(root).run("one")
