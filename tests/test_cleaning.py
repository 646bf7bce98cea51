"""What is dropped on the way is ours, and needed by nobody."""

import errno
import os
import shutil

import pytest

from umdqn.errors import UmdqnError
from umdqn.runs import files
from umdqn.runs.callbacks import Callback
from umdqn.runs.configure import configure
from umdqn.runs.run import load
from umdqn.runs.start import resume, train_config
from umdqn.studies.pages import claim
from witness import SMALL, digest


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of 1,000 steps, and the checksums of one of 1,400."""
    path = tmp_path_factory.mktemp("runs")
    short = train_config(configure("grid-world", "dqn", overrides=SMALL), path / "short")
    longer = configure("grid-world", "dqn", overrides=SMALL | {"steps": 1_400})
    return short.path, digest(train_config(longer, path / "longer"))


OPEN = files.open_regular


def unreadable(path, flags=os.O_RDONLY):
    """What a file system says of indices that is out of order for a moment."""
    if path.parent.name == "checkpoints" and flags == os.O_RDONLY:
        raise OSError(errno.EIO, "Input/output error", str(path))
    return OPEN(path, flags)


class Kill(Exception):
    """The end of a process, as far as its run can tell."""


class FailingDisk(Callback):
    """Indices cannot be read while a checkpoint is saved; the run ends right after it."""

    def __init__(self, patch, at):
        self._patch, self._at = patch, at

    def on_chunk(self, report):
        if report.step == self._at:
            self._patch.setattr(files, "open_regular", unreadable)

    def on_checkpoint(self, step, path):
        if step == self._at:
            raise Kill


def test_an_index_that_cannot_be_read_for_a_moment_costs_nothing(finished, tmp_path):
    path, longer = shutil.copytree(finished[0], tmp_path / "run"), finished[1]
    before = set(path.glob("replay/*"))
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Kill):
        resume(path, 1_400, [FailingDisk(patch, 1_200)])
    assert before < set(path.glob("replay/*"))
    assert digest(resume(path)) == longer


def test_files_of_users_stay_where_they_are(finished, tmp_path):
    path, longer = shutil.copytree(finished[0], tmp_path / "run"), finished[1]
    theirs = [
        path / ".env.template",
        path / "checkpoints" / "best.safetensors",
        path / "checkpoints" / "0000001000.safetensors.bak",
        path / "replay" / "notes.txt",
    ]
    ours = [
        path / ".manifest.json.abcd1234.umdqn-partial",
        path / "checkpoints" / "0000001100.loop.safetensors",
        path / "replay" / "0-0000001100-0.safetensors",
    ]
    for file in (*theirs, *ours):
        file.write_text("something")
    assert longer.items() <= digest(resume(path, 1_400)).items()
    assert {file.read_text() for file in theirs} == {"something"}
    assert not any(file.exists() for file in ours)
    # And a new run does not begin among them.
    new = tmp_path / "new"
    new.mkdir()
    (new / ".env.template").write_text("something")
    with pytest.raises(UmdqnError, match="not empty"):
        train_config(load(path).config, new)


def test_a_report_that_was_cut_off_at_its_start_can_be_made(tmp_path):
    left = tmp_path / ".report.json.abcd1234.umdqn-partial"
    left.write_text("{")
    claim(tmp_path, "comparison")
    claim(tmp_path, "comparison")
    with pytest.raises(UmdqnError, match="holds a comparison, not a reproduction"):
        claim(tmp_path, "reproduction")
