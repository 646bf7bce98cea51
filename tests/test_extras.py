"""The command that installs a missing extra fits how the package was installed."""

import json
import sys
from pathlib import Path

import pytest

from umdqn import extras
from umdqn.cli.main import main
from umdqn.errors import UmdqnError

EDITABLE = {"url": "file:///home/me/um%20dqn", "dir_info": {"editable": True}}
FOLDER = {"url": "file:///home/me/umdqn", "dir_info": {}}
WHEEL = {"url": "https://host/umdqn-1-py3-none-any.whl", "archive_info": {}}
GIT = {"url": "https://host/umdqn", "vcs_info": {"vcs": "git", "commit_id": "abc"}}


class Installation:
    """Files that installers leave."""

    def __init__(self, prefix: Path, monkeypatch: pytest.MonkeyPatch):
        self.prefix, self._files = prefix, {"INSTALLER": "pip"}
        python = prefix / "bin" / "python"
        python.parent.mkdir()
        (prefix / "bin" / "pip").write_text("#!/bin/sh\n")
        (prefix / "bin" / "pip").chmod(0o755)
        monkeypatch.setattr(sys, "prefix", str(prefix))
        monkeypatch.setattr(sys, "executable", str(python))
        monkeypatch.setenv("PATH", str(python.parent))
        monkeypatch.setattr(extras, "distribution", lambda name: self)

    def read_text(self, name: str) -> str | None:
        return self._files.get(name)

    def write(self, **files: object) -> None:
        self._files |= {name.replace("__", "."): text for name, text in files.items()}  # type: ignore


@pytest.fixture
def installed(tmp_path, monkeypatch):
    return Installation(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (None, "pip install 'umdqn[ray]'"),
        (EDITABLE, "pip install -e '/home/me/um dqn[ray]'"),
        (FOLDER, "pip install '/home/me/umdqn[ray]'"),
        (WHEEL, "pip install 'umdqn[ray] @ https://host/umdqn-1-py3-none-any.whl'"),
        (GIT, "pip install 'umdqn[ray] @ git+https://host/umdqn'"),
    ],
)
def test_pip(source, expected, installed):
    if source is not None:
        installed.write(direct_url__json=json.dumps(source))
    assert extras.install_command("ray") == expected


def test_pip_of_an_environment_that_is_not_activated(installed, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin")
    python = installed.prefix / "bin" / "python"
    assert extras.install_command("ray") == f"{python} -m pip install 'umdqn[ray]'"


def test_pipx_and_uv(installed):
    installed.write(INSTALLER="uv\n")
    python = installed.prefix / "bin" / "python"
    assert extras.install_command("ray") == f"uv pip install --python {python} 'umdqn[ray]'"
    (installed.prefix / "uv-receipt.toml").touch()
    assert extras.install_command("ray") == "uv tool install --force 'umdqn[ray]'"
    (installed.prefix / "uv-receipt.toml").unlink()
    (installed.prefix / "pipx_metadata.json").touch()
    assert extras.install_command("ray") == "pipx install --force 'umdqn[ray]'"
    installed.write(direct_url__json=json.dumps(EDITABLE))
    assert extras.install_command("ray") == "pipx install --force -e '/home/me/um dqn[ray]'"


def test_damaged_records_are_as_none(installed):
    for text in ("", "{", "[]", '{"dir_info": 3}', "null"):
        installed.write(direct_url__json=text)
        assert extras.install_command("ray") == "pip install 'umdqn[ray]'"


def test_missing_extras_are_told_before_anything_starts(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "wandb", None)
    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda name: None)
    calls = {
        "wandb": ["train", "grid-world", "dqn", "--log", "wandb"],
        "ray": ["sweep", "--env", "grid-world", "--agent", "dqn", "--ray", "local", "--out", "x"],
    }
    for extra, arguments in calls.items():
        assert main(arguments) == 1
        error = capsys.readouterr().err
        assert f"[{extra}]'" in error
        assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UmdqnError, match=r"needs an extra: .*\[x\]'"):
        extras.require("it", "x", ["no_such_module"])
