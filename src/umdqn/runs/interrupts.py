"""Ctrl-C, SIGTERM and a terminal that closes: stop at the next safe point, not at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# SIGTERM is what Slurm, Docker and `kill` send before SIGKILL; SIGHUP comes from a terminal that
# closes, and Windows has none.
_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


@contextmanager
def deferred_interrupt() -> Iterator[threading.Event]:
    """Yield an event that the first stop signal sets; a second signal acts as usual."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS if _is_ours(number)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(signum: int, frame: Any) -> None:
        asked.set()
        restore()

    for number in before:
        signal.signal(number, note)
    try:
        yield asked
    finally:
        restore()


def _is_ours(number: signal.Signals) -> bool:
    """Return whether to act on a signal."""
    handler = signal.getsignal(number)
    # Handlers that were not installed from Python cannot be restored; `nohup` ignores SIGHUP.
    ignored = number == getattr(signal, "SIGHUP", None) and handler == signal.SIG_IGN
    return handler is not None and not ignored
