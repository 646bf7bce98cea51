"""A run from elsewhere imports nothing before its reader allows it."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import umdqn
from umdqn.cli.main import main
from umdqn.errors import Notice
from umdqn.parts import imports
from umdqn.parts.imports import file_of, is_allowed
from umdqn.runs.configure import configure
from umdqn.runs.directory import RunDirectory
from umdqn.runs.fields import to_dict
from umdqn.runs.files import read_sealed, write_sealed
from umdqn.runs.kinds import KINDS
from umdqn.runs.signing import is_signed, sign
from umdqn.runs.trust import Untrusted, imports_of
from umdqn.studies.laws.study import LawsStudy
from umdqn.sweeps.pools import LocalPool
from witness import SMALL, options

MODULE = "stranger_corridor"
NAME = f"{MODULE}:Corridor"
# What importing it leaves behind shows that its code ran.
CODE = """
import pathlib

import gymnasium
import numpy as np

pathlib.Path(__file__).with_suffix(".ran").touch()


class Corridor(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 5
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.left -= 1
        return np.zeros(1, np.float32), float(action), self.left == 0, False, {}
"""
SHORT = SMALL | {"steps": 200, "evaluation.every": 200}


@pytest.fixture(scope="module")
def author(tmp_path_factory):
    """Somebody's machine: a state directory with a key, a module, and a run made with it."""
    home = tmp_path_factory.mktemp("author")
    (home / f"{MODULE}.py").write_text(CODE)
    command = ["train", NAME, "dqn", "--out", "run", *options(SHORT)]
    done = subprocess.run(
        [sys.executable, "-m", "umdqn", *command],
        cwd=home,
        env=os.environ | {"XDG_STATE_HOME": str(home / "state")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    (home / f"{MODULE}.ran").unlink()
    return home


@pytest.fixture
def reader(author, tmp_path, monkeypatch):
    """Another machine, to which the author's directory was sent; its user stands in it."""
    shutil.copytree(author, tmp_path / "received")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(author)])
    monkeypatch.setattr(imports, "_allowed", set())
    monkeypatch.chdir(tmp_path / "received")
    yield tmp_path / "received"
    sys.modules.pop(MODULE, None)


def ran(folder: Path) -> bool:
    return (folder / f"{MODULE}.ran").exists()


COMMANDS = {
    "evaluate": ["evaluate", "run"],
    "accuracy": ["accuracy", "run"],
    "laws": ["laws", "run", "--state", "0", "--out", "laws.png"],
    "calibrate": ["calibrate", "run"],
    "watch": ["watch", "run", "--out", "episode.gif"],
    "resume": ["train", "--resume", "run", "--steps", "400"],
    "compare": ["compare", "run", "--out", "report"],
    "law-of": ["law-of", "run", "CartPole-v1", "--out", "law"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_received_run_says_what_it_would_import(reader, author, command, capsys):
    made = author / f"{MODULE}.py"
    assert main(COMMANDS[command]) == 1
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert "run was not made by you on this machine, and reading it would import code" in printed
    assert f"env '{NAME}' (made with '{made}', here from {reader / made.name})" in printed
    assert "--trust allows it" in printed
    assert not ran(reader)


def test_python_asks_too(reader):
    for read in (umdqn.load, umdqn.resume, umdqn.load_law):
        with pytest.raises(Untrusted, match="trust=True"):
            read("run")
    with pytest.raises(Untrusted, match="trust=True"):
        umdqn.learn_law("run", "CartPole-v1", out="law")
    assert not ran(reader)


def test_trust_lets_it_go_on(reader, capsys):
    """Once resumed here, it is a run of this user's."""
    assert main(["evaluate", "run", "--episodes", "1", "--trust"]) == 0
    assert ran(reader)
    assert main(["train", "--resume", "run", "--steps", "400", "--trust"]) == 0
    imports._allowed.clear()
    assert umdqn.load("run").step == 400


def test_the_author_is_not_asked(author, reader, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(author / "state"))
    monkeypatch.chdir(author)
    assert umdqn.load("run").step == 200
    # A copy of one's own run is one's own, too.
    assert umdqn.load(reader / "run").step == 200
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(author)])
    # The same name leads to another file now: somebody's, beside the run.
    monkeypatch.chdir(reader)
    with pytest.raises(Untrusted, match="made with"):
        umdqn.load("run")
    assert not ran(author)
    assert not ran(reader)


def test_signatures_cannot_be_moved_or_made_up(author, reader, monkeypatch):
    """A run with a signature of the author's is sent back to the author, changed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(author / "state"))
    monkeypatch.chdir(author)
    manifest = reader / "run" / "manifest.json"
    sound = read_sealed(manifest)
    assert is_signed([[sound["config"]], sound["imports"]], sound["signature"])
    for changed in (
        {"config": sound["config"] | {"env": "antigravity:fly"}},
        {"config": sound["config"] | {"env": "antigravity:fly"}, "imports": {}},
        {"imports": sound["imports"] | {NAME: str(reader / f"{MODULE}.py")}},
        {"signature": "0" * 64},
        {"signature": None},
        {"signature": sign("something else")},
    ):
        write_sealed(manifest, sound | changed)
        with pytest.raises(Untrusted):
            umdqn.load(reader / "run")
    assert "antigravity" not in sys.modules


def test_without_a_home_nothing_is_trusted(reader, monkeypatch):
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/proc/nowhere")
    assert sign("anything") is None
    with pytest.raises(Untrusted):
        umdqn.load("run")


def test_a_received_sweep_imports_nothing(reader, capsys):
    config = read_sealed(reader / "run" / "manifest.json")["config"]
    job = {"name": "a_b_seed0_00000000", "point": {"env": NAME, "agent": "dqn"}, "config": config}
    (reader / "sweep").mkdir()
    plan = {"format": "umdqn-sweep", "format_version": 3, "jobs": [job]}
    write_sealed(reader / "sweep" / "sweep.json", plan)
    assert main(["compare", "sweep", "--out", "report"]) == 1
    assert "sweep was not made by you" in capsys.readouterr().err
    point = ["sweep", "--env", "grid-world", "--agent", "dqn", "--out", "sweep"]
    assert main(point) == 1
    assert "sweep was not made by you" in capsys.readouterr().err
    LawsStudy(reader / "study").claim()
    shutil.move("sweep", "study/sweep")
    study = ["study", "laws", "--out", "study"]
    assert main(study) == 1
    assert "--trust allows it" in capsys.readouterr().err
    assert not is_allowed(NAME)
    # A mistake that is found before anything is trained.
    assert main([*study, "--trust", "--ray", "local", "--workers", "2"]) == 1
    assert is_allowed(NAME)
    assert not ran(reader)


def test_a_file_of_the_working_directory_does_not_stand_in_for_a_library(tmp_path, monkeypatch):
    """Neither for the command nor for the processes of a sweep."""
    (tmp_path / "numpy.py").write_text("import pathlib; pathlib.Path('ran').touch()")
    monkeypatch.chdir(tmp_path)
    done = subprocess.run([sys.executable, "-m", "umdqn", "envs"], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    pool = LocalPool(tmp_path)
    pool.submit("absent")
    while not (ended := pool.ended()):
        threading.Event().wait(0.1)
    pool.close()
    assert "cannot read" in ended["absent"].reason
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("agent", umdqn.ALGORITHMS)
def test_what_is_built_in_needs_no_trust(agent):
    assert imports_of(to_dict(configure("grid-world", agent))) == {}


def test_everything_that_would_be_imported_is_found():
    config = to_dict(configure("grid-world", "dqn"))
    for kind in KINDS:
        # By its class, by its name, and by a class that a built-in name hides.
        for part in ({"name": "a", "class": "m:A"}, {"name": "m:A"}, {"class": "m:A"}):
            named = {"name": config[kind]["name"]} | part
            assert imports_of(config | {kind: named}) == {kind: "m:A"}
    given = config["optimiser"] | {"name": "given", "transformation": "m:optimiser"}
    assert imports_of(config | {"optimiser": given})["optimiser.transformation"] == "m:optimiser"
    assert imports_of({"policy": "m:policy"}) == {"policy": "m:policy"}
    assert imports_of({"policy": "/runs/of:yesterday@100"}) == {}
    assert imports_of({"env": "object Corridor 1234-1"}) == {}
    wrappers = ["m:First:width=2", "frame-stack:stack_size=4", "n:Second"]
    assert imports_of({"wrappers": wrappers}) == {"wrappers.0": "m:First", "wrappers.2": "n:Second"}


def test_the_key_is_private_and_made_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    found = []
    threads = [threading.Thread(target=lambda: found.append(sign("data"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    key = tmp_path / "umdqn" / "key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in key.parent.iterdir()] == ["key"]
    assert is_signed("data", found[0])
    assert not is_signed("other data", found[0])
    key.chmod(0o644)
    with pytest.warns(Notice, match="readable by its user alone"):
        assert not is_signed("data", found[0])
    elsewhere = tmp_path / "elsewhere"
    key.chmod(0o600)
    key.rename(elsewhere)
    key.symlink_to(elsewhere)
    assert not is_signed("data", found[0])


def test_a_module_is_located_without_its_code(tmp_path, monkeypatch):
    package = tmp_path / "located_package"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit")
    (package / "inside.py").write_text("raise SystemExit")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    assert file_of("located_package.inside:A") == os.path.realpath(package / "__init__.py")
    assert file_of("no_such_module_anywhere:A") is None
    assert not is_allowed("located_package.inside:A")


def test_registering_a_part_allows_it(reader):
    """`umdqn.register` is the user's own word."""
    import example_parts

    path = "example_parts:RoundRobin"
    manifest = reader / "run" / "manifest.json"
    sound = read_sealed(manifest)
    exploration = {"name": "mine-too", "class": path, "period": 3}
    config = sound["config"] | {"exploration": exploration, "env": "CartPole-v1"}
    write_sealed(manifest, sound | {"config": config})
    with pytest.raises(Untrusted, match=path):
        umdqn.load("run")
    KINDS["exploration"]._classes.pop("mine-too", None)
    umdqn.register("exploration", "mine-too", example_parts.RoundRobin)
    try:
        assert RunDirectory(Path("run")).read_manifest()[0].exploration.period == 3
    finally:
        del KINDS["exploration"]._classes["mine-too"]
