"""Ctrl-C, and the signal of cluster managers, that let work come to a good end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# What a keyboard sends, and what Slurm, Docker and `kill` send before they do worse.
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def deferred_interrupt() -> Iterator[threading.Event]:
    """Turn the first signal to stop into a flag, so that work can be saved; a second one kills."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    # What was not set from Python could not be set back.
    known = [number for number in _SIGNALS if signal.getsignal(number) is not None]
    before = {number: signal.getsignal(number) for number in known}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(signum: int, frame: Any) -> None:
        asked.set()
        restore()

    for number in known:
        signal.signal(number, note)
    try:
        yield asked
    finally:
        restore()
