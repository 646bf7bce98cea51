"""Keep commands running when the reader of their output has gone, as in `umdqn train | head`."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import Any

# Errors of writing to a pipe without a reader, and to a terminal that has closed.
_GONE = (errno.EPIPE, errno.EIO)


class _Lasting:
    """A stream that drops its text once its reader has gone."""

    def __init__(self, stream: Any):
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, or drop the text."""
        with self._dropped():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, or drop the buffered text."""
        with self._dropped():
            self._stream.flush()

    @contextlib.contextmanager
    def _dropped(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in _GONE:
                raise
            # Drops the text that Python still buffers, and all later text.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def lasting_output() -> Iterator[None]:
    """Keep the command in this context running after the reader of its output has gone."""
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
