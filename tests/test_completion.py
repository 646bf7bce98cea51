"""Completion of command lines, asked as a shell asks, and in a real interactive bash."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from umdqn.cli.completion import complete
from umdqn.cli.main import main

CASES = {
    "umdqn la": ["law-of", "laws"],
    "umdqn --ver": ["--version"],
    "umdqn train grid-world umdqn-": ["umdqn-kl", "umdqn-c", "umdqn-w"],
    "umdqn train --agent qr": ["qr-dqn"],
    "umdqn train --lr 0.1 --double ": ["true", "false"],
    "umdqn train --loop=c": ["--loop=compiled"],
    "umdqn train --target ": ["periodic", "polyak"],
    "umdqn train --buff": ["--buffer-size"],
    "umdqn train --checkpoint-e": ["--checkpoint-every"],
    "umdqn train --help expl": ["exploration", "exploration.start"],
    'umdqn train "grid-wo': ["grid-world"],
    "umdqn train --domain -1 1 grid-w": ["grid-world"],
    "umdqn sweep --agent dqn iq": ["iqn"],
    "umdqn study ": ["laws", "truth"],
    # Files: the shell completes them.
    "umdqn evaluate ": [],
    "umdqn train --out ": [],
    "umdqn nothing ": [],
    "umdqn train --nothing ": ["grid-world"],
}


@pytest.mark.parametrize("line", CASES)
def test_words_that_can_come_next(line):
    found = [word for word, _ in complete(line)]
    assert found[: len(CASES[line])] == CASES[line]
    assert CASES[line] or not found


def test_every_option_of_every_command_is_completed(capsys):
    """What `--help` shows can be completed, and the other way around."""
    for command, _ in complete("umdqn "):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        shown = re.findall(r"^  (-.*?)(?:  |$)", capsys.readouterr().out, re.MULTILINE)
        listed = {name for line in shown for name in re.findall(r"(?<![\w-])--[\w.-]+", line)}
        offered = {word for word, _ in complete(f"umdqn {command} --")}
        assert offered == listed, command


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_what_their_shell_can_read(shell, capsys, tmp_path):
    assert main(["completion", shell]) == 0
    script = tmp_path / f"complete.{shell}"
    script.write_text(capsys.readouterr().out)
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    done = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


class Bash:
    """An interactive bash on a terminal, with completion of `umdqn` set up as the help says."""

    def __init__(self, folder: Path):
        (folder / "umdqn").write_text(f'#!/bin/sh\nexec {sys.executable} -m umdqn "$@"\n')
        (folder / "umdqn").chmod(0o755)
        (folder / "run-directory").mkdir()
        process, self._terminal = pty.fork()
        if process == 0:
            os.chdir(folder)
            os.environ |= {"PATH": f"{folder}:{os.environ['PATH']}", "PS1": "$ ", "TERM": "dumb"}
            os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
        self._process = process
        self.type("bind 'set enable-bracketed-paste off'; bind 'set bell-style none'\n")
        self.type('eval "$(umdqn completion bash)"; echo rea""dy\n')
        self.until("ready")

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def until(self, expected: str, seconds: float = 60) -> str:
        """Read the screen until it shows a text."""
        seen, end = "", time.monotonic() + seconds
        while expected not in seen:
            assert time.monotonic() < end, f"no {expected!r} in {seen!r}"
            if select.select([self._terminal], [], [], 0.5)[0]:
                seen += os.read(self._terminal, 65536).decode()
        return seen

    def completed(self, typed: str, expected: str) -> None:
        """Type, press Tab, and wait for the line to be completed; then give the line up."""
        self.type(f"{typed}\t")
        self.until(expected)
        self.type("\x15echo cle''ar\n")
        self.until("clear")

    def close(self) -> None:
        self.type("\x15exit\n")
        os.waitpid(self._process, 0)
        os.close(self._terminal)


@pytest.fixture(scope="module")
def bash(tmp_path_factory):
    if shutil.which("bash") is None:
        pytest.skip("there is no bash here")
    shell = Bash(tmp_path_factory.mktemp("bash"))
    yield shell
    shell.close()


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("umdqn calib", "calibrate "),
        ("umdqn train --metric.kap", "--metric.kappa "),
        ("umdqn train --metric.sampling=strat", "=stratified "),
        ("umdqn train --metric.sampling fi", "fixed "),
        ("umdqn train --metric wass", "wasserstein "),
        ("umdqn evaluate run-d", "run-directory/"),
        ("umdqn train --out run-d", "run-directory/"),
    ],
)
def test_a_real_bash_completes(bash, typed, expected):
    bash.completed(typed, expected)


def test_a_real_bash_lists_what_there_is(bash):
    bash.type("umdqn train --loop \t\t")
    seen = bash.until("host")
    assert "auto" in seen
    assert "compiled" in seen
    bash.type("\x15")
