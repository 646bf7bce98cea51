"""A line at the bottom of a terminal that is redrawn in place, at any width."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from rich.cells import cell_len, set_cell_size

# The cursor rests at the start of the line, so that erasing to the end of the screen also removes
# what a terminal wraps when it is made narrower.
_ERASE = "\r\x1b[J"
_SECONDS = 0.5
_USUAL_WIDTH = 80
_LEAST_BAR, _MOST_BAR = 8, 30


def is_terminal(stream: Any) -> bool:
    """Return whether a stream is a terminal that can redraw a line."""
    with contextlib.suppress(AttributeError, ValueError, OSError):
        return bool(stream.isatty()) and os.environ.get("TERM") != "dumb"
    return False


def fitted(width: int, parts: Sequence[tuple[int, str]], share: float, glyphs: str = "━─") -> str:
    """Join parts in their order, with a bar after the first, in at most `width` cells.

    Where there is no room, the parts of the largest ranks are left out: rank 0 goes last.
    """
    kept = [part for part in parts if part[1]]
    while len(kept) > 1 and _cells(kept) > width:
        kept.remove(max(kept, key=lambda part: part[0]))
    words = [text for _, text in kept]
    room = min(width - _cells(kept) - 2, _MOST_BAR)
    if room >= _LEAST_BAR:
        done = round(room * min(max(share, 0.0), 1.0))
        words.insert(1, glyphs[0] * done + glyphs[1] * (room - done))
    line = "  ".join(words)
    return line if cell_len(line) <= width else set_cell_size(line, max(width, 0))


def _cells(parts: Sequence[tuple[int, str]]) -> int:
    return sum(cell_len(text) for _, text in parts) + 2 * (len(parts) - 1)


class StatusLine:
    """Draws a line on stderr twice a second; what is printed meanwhile appears above it."""

    def __init__(self, draw: Callable[[int, str], str]):
        self._draw = draw
        """Returns the line for a width, with the two glyphs of a bar."""
        self._stream: TextIO = sys.stderr
        self._lock = threading.RLock()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._keep_drawing, daemon=True)
        self._before: dict[str, TextIO] = {}
        # Text that has not ended its line: nothing may be drawn over it.
        self._open = False

    def start(self) -> None:
        """Begin to draw, and to watch what is printed."""
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if is_terminal(stream):
                self._before[name] = stream
                setattr(sys, name, _Above(stream, self))
        self._thread.start()

    def stop(self) -> None:
        """Erase the line and stop drawing."""
        self._done.set()
        self._thread.join()
        for name, stream in self._before.items():
            if isinstance(getattr(sys, name), _Above):
                setattr(sys, name, stream)
        with self._lock:
            self._put("" if self._open else _ERASE)

    def draw(self) -> None:
        """Draw the line now."""
        with self._lock:
            if not self._open and not self._done.is_set():
                line = self._draw(self._width() - 1, self._glyphs())
                self._put(f"{_ERASE}{line}\r")

    def write_above(self, stream: TextIO, text: str) -> int:
        """Write text above the line."""
        with self._lock:
            if text and not self._open:
                self._put(_ERASE)
            count = stream.write(text)
            if text:
                self._open = not text.endswith("\n")
                stream.flush()
                self.draw()
            return count

    def _keep_drawing(self) -> None:
        while not self._done.wait(_SECONDS):
            self.draw()

    def _put(self, text: str) -> None:
        # A terminal that has gone away must not end the training.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()

    def _width(self) -> int:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            return os.get_terminal_size(self._stream.fileno()).columns or _USUAL_WIDTH
        return _USUAL_WIDTH

    def _glyphs(self) -> str:
        try:
            "━─".encode(self._stream.encoding or "ascii")
        except (UnicodeError, LookupError):
            return "#-"
        return "━─"


class _Above:
    """Replaces a stream while a status line is shown."""

    def __init__(self, stream: TextIO, line: StatusLine):
        self._stream, self._line = stream, line

    def write(self, text: str) -> int:
        return self._line.write_above(self._stream, text)

    def writelines(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
