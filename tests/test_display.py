"""Progress: on real terminals of any width, in a real notebook kernel, and nowhere unasked."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time

import pytest

from umdqn.runs.configure import configure
from umdqn.runs.display import LinesDisplay, TerminalDisplay, display_of
from umdqn.runs.terminal import fitted

PARTS = [(4, "dqn on X"), (0, "45%"), (3, "9/20"), (2, "0:31 left"), (1, "return 1.5")]


class Screen:
    """The least of a terminal: what is on it after text, line breaks, returns and erasures.

    `resize` cuts long lines into rows again, as most terminals do.
    """

    def __init__(self, width: int):
        self.width, self.lines, self.row, self.column = width, [""], 0, 0

    def feed(self, text: str) -> None:
        while text:
            if text.startswith("\x1b[J"):
                self.lines[self.row] = self.lines[self.row][: self.column]
                del self.lines[self.row + 1 :]
                text = text[3:]
                continue
            character, text = text[0], text[1:]
            if character == "\r":
                self.column = 0
            elif character == "\n":
                self._next_row()
            else:
                assert character.isprintable(), repr(character)
                if self.column == self.width:
                    self._next_row()
                    self.column = 0
                line = self.lines[self.row].ljust(self.column)
                self.lines[self.row] = line[: self.column] + character + line[self.column + 1 :]
                self.column += 1

    def resize(self, width: int) -> None:
        self.width = width
        assert self.column == 0, "the cursor rests at the start of the line"
        rows = [
            [line[i : i + width] for i in range(0, len(line), width)] or [""] for line in self.lines
        ]
        self.row = sum(len(cut) for cut in rows[: self.row])
        self.lines = [row for cut in rows for row in cut]

    def _next_row(self) -> None:
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append("")


class Terminal:
    """A program on a pseudo-terminal."""

    def __init__(self, arguments: list[str], width: int, **environment: str):
        self._master, slave = pty.openpty()
        self.screen = Screen(width)
        self._set(width)
        self._process = subprocess.Popen(
            arguments,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**os.environ, "TERM": "xterm", "PYTHONIOENCODING": "utf-8", **environment},
        )
        os.close(slave)

    def _set(self, width: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))

    def resize(self, width: int) -> None:
        self._read()
        self._set(width)
        self.screen.resize(width)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def until(self, holds, seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while not holds(self.screen.lines):
            assert time.monotonic() < end, self.screen.lines
            assert self._read(), self.screen.lines

    def finish(self) -> int:
        while self._read():
            pass
        code = self._process.wait(timeout=60)
        os.close(self._master)
        return code

    def _read(self) -> bool:
        """Read what there is; False once the program has closed the terminal."""
        if select.select([self._master], [], [], 1.0)[0]:
            try:
                self.screen.feed(os.read(self._master, 65536).decode())
            except OSError:
                return False
        return True


# The parts take 34 cells and the gaps 8; a bar takes at least 8, and one more gap.
FITTED = {
    52: "dqn on X  ####----  45%  9/20  0:31 left  return 1.5",
    51: "dqn on X  45%  9/20  0:31 left  return 1.5",
    41: "45%  9/20  0:31 left  return 1.5",
    31: "45%  0:31 left  return 1.5",
    25: "45%  ####----  return 1.5",
    14: "45%  ####-----",
    3: "45%",
    2: "45",
    0: "",
}


@pytest.mark.parametrize("width", FITTED)
def test_parts_are_left_out_by_rank_where_there_is_no_room(width):
    assert fitted(width, PARTS, 0.5, "#-") == FITTED[width]


LINE = """
import sys, time
from umdqn.runs.terminal import StatusLine, fitted
line = StatusLine(lambda width, glyphs: fitted(width, [(0, "45%"), (1, "x" * 30)], 0.5, glyphs))
line.start()
print("first, and " + "long " * 12)
for command in sys.stdin:
    print("asked: ", end=""); print(command.strip())
    print("warned", file=sys.stderr)
line.stop()
print("last")
"""


def test_a_line_survives_printing_and_resizing():
    terminal = Terminal([sys.executable, "-c", LINE], 80)
    terminal.until(lambda lines: lines[-1].startswith("45%"))
    for width in (30, 12, 60):
        terminal.resize(width)
        # Redrawn at the new width, and nothing of the old line is left.
        terminal.until(lambda lines, width=width: _fits(lines, width))
        assert sum("45%" in line for line in terminal.screen.lines) == 1
    terminal.type("hello\n")
    terminal.until(lambda lines: "warned" in lines and lines[-1].startswith("45%"))
    assert "asked: hello" in terminal.screen.lines
    terminal.type("\x04")
    assert terminal.finish() == 0
    assert [line for line in terminal.screen.lines if "45%" in line] == []
    assert terminal.screen.lines[-2:] == ["last", ""]


def _fits(lines: list[str], width: int) -> bool:
    """Whether the last line is the status, in full where it has room."""
    full = "x" * 30 in lines[-1]
    return lines[-1].startswith("45%") and len(lines[-1]) < width and full == (width > 35)


SHORT = ["--steps", "600", "--chunk", "100", "--learning-starts", "200", "--eval-freq", "300"]


@pytest.mark.slow
def test_training_in_a_narrow_terminal_that_is_resized(tmp_path):
    command = [
        sys.executable,
        "-m",
        "umdqn",
        "train",
        "grid-world",
        "dqn",
        "--n-eval-episodes",
        "2",
    ]
    terminal = Terminal([*command, *SHORT, "--out", str(tmp_path / "run")], 34)
    terminal.until(lambda lines: any("compiling" in line for line in lines))
    terminal.resize(20)
    assert terminal.finish() == 0
    shown = "".join(terminal.screen.lines)
    assert "compiling" not in shown
    assert "%" not in shown
    assert shown.endswith(str(tmp_path / "run"))


def test_progress_is_shown_only_where_someone_looks(monkeypatch):
    config = configure("grid-world", "dqn")
    assert display_of(config, None) is None
    assert display_of(config, False) is None
    assert type(display_of(config, True)) is LinesDisplay
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        assert type(display_of(config, None)) is TerminalDisplay
        assert display_of(config, False) is None
        monkeypatch.setenv("TERM", "dumb")
        assert display_of(config, None) is None
    os.close(master)


CELL = """
import umdqn
run = umdqn.train("grid-world", "dqn", steps=400, chunk=100, replay={"warmup": 200},
                  evaluation={"every": 200, "episodes": 2}, out=%r%s)
"""


@pytest.mark.slow
def test_a_notebook_shows_one_bar_that_is_updated(tmp_path):
    manager = pytest.importorskip("jupyter_client.manager")
    pytest.importorskip("ipykernel")
    kernel, client = manager.start_new_kernel(kernel_name="python3")
    try:
        messages: list[dict] = []
        cell = CELL % (str(tmp_path / "run"), "")
        reply = client.execute_interactive(cell, timeout=240, output_hook=messages.append)
        assert reply["content"]["status"] == "ok", reply
        shown = [each for each in messages if each["msg_type"] == "display_data"]
        updates = [each for each in messages if each["msg_type"] == "update_display_data"]
        assert len(shown) == 1
        last = updates[-1]["content"]["data"]
        assert "<progress max='1' value='1.0000'>" in last["text/html"]
        assert "400 of 400 steps" in last["text/plain"]
        assert "return" in last["text/html"]
        quiet: list[dict] = []
        cell = CELL % (str(tmp_path / "quiet"), ", progress=False")
        client.execute_interactive(cell, timeout=240, output_hook=quiet.append)
        assert not [each for each in quiet if "display_data" in each["msg_type"]]
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
