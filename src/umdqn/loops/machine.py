"""The machine as JAX sees it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax

from umdqn.errors import UmdqnError, notice, one_line
from umdqn.folders import user_folder

# Parameters of glibc's mallopt, and a size above all working memories and below large replays.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT = 256 * 2**20
# Messages of JAX when memory runs out.
_OUT_OF_MEMORY = re.compile("RESOURCE_EXHAUSTED|out of memory", re.IGNORECASE)


def available_cores() -> int:
    """Return the number of CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def use_all_cores() -> None:
    """Let JAX see every CPU core as a device of its own; call it before JAX starts.

    Without effect once JAX has started. Seeds then run in threads on the devices that there are,
    which is nearly as fast.
    """
    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", available_cores())


def use_one_core() -> None:
    """Start JAX with a single worker thread, for processes that train one small network.

    Programs of many small operations run a third faster if none is handed to another thread.
    Without effect once JAX has started.
    """
    before = os.environ.get("NPROC")
    os.environ["NPROC"] = "1"
    try:
        jax.devices()
    finally:
        del os.environ["NPROC"]
        if before is not None:
            os.environ["NPROC"] = before


def keep_compiled_programs() -> None:
    """Keep compiled programs on disk, so that later processes start seconds earlier."""
    cache = user_folder("XDG_CACHE_HOME", ".cache")
    if cache is None:
        notice(
            "no home directory to cache compiled programs in: every process compiles them again "
            "(set XDG_CACHE_HOME to a directory)"
        )
        return
    jax.config.update("jax_compilation_cache_dir", str(cache))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


@contextlib.contextmanager
def named_exhaustion() -> Iterator[None]:
    """Turn out-of-memory errors of JAX and NumPy into one line."""
    try:
        yield
    except (MemoryError, jax.errors.JaxRuntimeError) as error:
        if not isinstance(error, MemoryError) and not _OUT_OF_MEMORY.search(str(error)):
            raise
        raise UmdqnError(f"not enough memory to train: {one_line(error)}") from error


def keep_freed_memory() -> None:
    """Keep freed blocks of memory in this process, where the C library can.

    A compiled program allocates its working memory at each call. By default the C library gets
    large blocks from the system each time: with pictures, page faults take a third of an update.
    """
    set_option = _of_c_library("mallopt")
    if set_option is not None:
        set_option(_M_MMAP_THRESHOLD, _KEPT)
        set_option(_M_TRIM_THRESHOLD, _KEPT)


def return_freed_memory() -> None:
    """Return freed memory to the system, where the C library can; compilation leaves much of it."""
    trim = _of_c_library("malloc_trim")
    if trim is not None:
        trim(0)


def _of_c_library(name: str) -> Callable[..., Any] | None:
    """A function of the C library, if it has it."""
    return getattr(ctypes.CDLL(None), name, None) if os.name == "posix" else None


def peak_memory() -> int | None:
    """Return the most bytes that this process ever held, or None if the system does not tell."""
    status = Path("/proc/self/status")
    if status.exists():  # Linux, where `ru_maxrss` also counts the parent process
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        # Some sandboxes do not tell.
        return int(lines["VmHWM"].split()[0]) * 1024 if "VmHWM" in lines else None
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
