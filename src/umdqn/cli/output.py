"""Output that nobody reads any more: commands go on without it, above all those that train."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import Any

# A reader that has ended, such as `head`, and a terminal that is gone.
_GONE = (errno.EPIPE, errno.EIO)


class _Lasting:
    """A stream that forgets what it is told once its reader is gone."""

    def __init__(self, stream: Any):
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, or drop the text."""
        with self._dropped():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, or drop what was held back."""
        with self._dropped():
            self._stream.flush()

    @contextlib.contextmanager
    def _dropped(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in _GONE:
                raise
            # What Python still holds, and all that follows, goes nowhere.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def lasting_output() -> Iterator[None]:
    """Let a command that runs in this context go on when its output has no reader any more."""
    before: Any = (sys.stdout, sys.stderr)
    # Python has no stream where the shell closed one.
    lasting = [None if stream is None else _Lasting(stream) for stream in before]
    sys.stdout, sys.stderr = lasting
    try:
        yield
        for stream in lasting:
            if stream is not None:
                stream.flush()
    finally:
        sys.stdout, sys.stderr = before
