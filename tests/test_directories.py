"""Run directories: made once, and refused where they are not what they should be."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from umdqn.errors import UmdqnError
from umdqn.runs.configure import configure
from umdqn.runs.directory import RunDirectory
from umdqn.runs.files import read_sealed, write_sealed
from umdqn.runs.run import load


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda run: (run / "manifest.json").write_text("{"), "corrupt: not JSON"),
        (lambda run: (run / "manifest.json").write_text("[]"), "not the manifest of a umdqn run"),
        (lambda run: (run / "manifest.json").unlink(), "has no manifest.json"),
        (lambda run: (run / "manifest.json").write_text("[" * 100_000), "corrupt: not JSON"),
        (lambda run: replace(run, '"seeds": 2', '"seeds": 1'), "its checksum is wrong"),
        (lambda run: replace(run, '"format_version": 3', '"format_version": 4'), "version 4;"),
        (lambda run: edit(run, format_version=2), "written by umdqn 0.1.* train it again"),
        (lambda run: edit(run, format_version=99), "format version 99"),
        (lambda run: edit(run, config={}), "corrupt"),
        (
            lambda run: edit(run, versions=None),
            "corrupt: expected `object`, got `null` at `versions`",
        ),
        (
            lambda run: edit(run, seconds="long"),
            "corrupt: expected `float`, got `str` at `seconds`",
        ),
        (lambda run: edit(run, metrics=[1]), "corrupt: .* at `metrics`"),
        (lambda run: from_later(run), "written by umdqn 99.0, not .* unknown fields: wings"),
        (lambda run: cut(run), "corrupt: its size is wrong"),
        (
            lambda run: edit_config(run, torso={"name": "mlp", "widths": [9]}),
            "not those of the manifest",
        ),
        (lambda run: edit_config(run, steps=-1), "steps = -1"),
        (lambda run: [p.unlink() for p in (run / "checkpoints").iterdir()], "no checkpoint"),
    ],
)
def test_corrupt_and_foreign_directories_are_refused(small_run, tmp_path, spoil, message):
    copy = tmp_path / "copy"
    shutil.copytree(small_run.path, copy)
    spoil(copy)
    with pytest.raises(UmdqnError, match=message) as error:
        load(copy)
    assert "\n" not in str(error.value)


def edit(run, **changes):
    """Change a manifest as another program could, checksum included."""
    path = run / "manifest.json"
    write_sealed(path, read_sealed(path) | changes)


def replace(run, old, new):
    path = run / "manifest.json"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def edit_config(run, **changes):
    config = json.loads((run / "manifest.json").read_text())["config"]
    edit(run, config=config | changes)


def from_later(run):
    """A run whose version knows fields that this one does not."""
    edit_config(run, wings=2)
    edit(run, versions={"umdqn": "99.0"})


def cut(run):
    for path in (run / "checkpoints").glob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:-100])


def test_simultaneous_starts_do_not_meet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = (
        "from umdqn.runs.configure import configure\n"
        "from umdqn.runs.directory import RunDirectory\n"
        "config = configure('grid-world', 'dqn')\n"
        "directory = RunDirectory.claim(config, None)\n"
        "directory.begin(config)\n"
        "print(directory.path)\n"
    )
    starts = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    made = [start.communicate()[0].strip() for start in starts]
    assert len(set(made)) == 3
    assert sorted(Path("runs").iterdir()) == sorted(map(Path, made))
    for path in made:
        assert RunDirectory(Path(path)).read_manifest()[0] == configure("grid-world", "dqn")
