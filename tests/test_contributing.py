"""The worked example of CONTRIBUTING.md really is one file and one line."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TABLE = "exploration/__init__.py"
SHORT = ["--steps", "300", "--replay.warmup", "200", "--evaluation.episodes", "2"]


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the file and the line that the text shows."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    [file] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    [line] = re.findall(r"```\n( +\"softmax\": .*?\n)```", text)
    folder = tmp_path_factory.mktemp("extended")
    package = folder / "umdqn"
    shutil.copytree(ROOT / "src" / "umdqn", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "exploration" / "softmax.py").write_text(file)
    table = (package / TABLE).read_text()
    entry = re.search(r"^ +\"epsilon-greedy\": .*\n", table, re.MULTILINE)
    assert entry is not None
    (package / TABLE).write_text(table.replace(entry[0], entry[0] + line))
    return folder


def umdqn(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "umdqn", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_the_new_rule_trains_and_resumes(extended: Path) -> None:
    rule = ["--exploration", "softmax", "--exploration.temperature", "0.2"]
    done = umdqn(extended, "train", "grid-world", "dqn", *rule, *SHORT, "--out", "run")
    assert done.returncode == 0, done.stderr
    assert '"temperature": 0.2' in (extended / "run" / "manifest.json").read_text()
    done = umdqn(extended, "train", "--resume", "run", "--steps", "350")
    assert done.returncode == 0, done.stderr


def test_the_new_rule_is_in_the_help_and_is_checked(extended: Path) -> None:
    shown = " ".join(umdqn(extended, "train", "--help").stdout.split())
    assert "Difference of scores that makes an action e times as likely as another." in shown
    rule = ["--exploration", "softmax", "--exploration.temperature", "-1"]
    done = umdqn(extended, "train", "grid-world", "dqn", *rule, "--out", "none")
    assert done.returncode == 1
    assert done.stderr == "umdqn: exploration.temperature = -1.0 is not allowed: above 0\n"
    assert not (extended / "none").exists()
