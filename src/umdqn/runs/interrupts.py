"""Ctrl-C and SIGTERM: stop at the next safe point instead of at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# SIGTERM is what Slurm, Docker and `kill` send before SIGKILL.
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def deferred_interrupt() -> Iterator[threading.Event]:
    """Yield an event that the first stop signal sets; a second signal acts as usual."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    # Handlers that were not installed from Python cannot be restored.
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
