"""Memory that this process may still take: of the machine, of its container, of its limits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

# Where Linux describes processes and control groups, which are how containers are limited.
_ROOT = Path("/")
# Version 1 of control groups writes a number above this where there is no limit.
_UNLIMITED = 2**60


def available_memory(root: Path = _ROOT) -> int | None:
    """Return the bytes that this process can still take, or None if the system does not tell.

    Memory that the system can free at once, such as cached files, counts; swap does not.
    """
    found = [*_machine(root), *_control_groups(root), *_limits(root)]
    return max(min(found), 0) if found else None


def resident_memory(root: Path = _ROOT) -> int:
    """Return the bytes of memory that this process holds; 0 if the system does not tell."""
    return _pages(root, 1) or 0


def _machine(root: Path) -> Iterator[int]:
    lines = (line.split() for line in _text(root / "proc/meminfo").splitlines())
    numbers = {words[0]: int(words[1]) * 1024 for words in lines if len(words) > 1}
    if "MemAvailable:" in numbers:
        yield numbers["MemAvailable:"]
    elif hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _control_groups(root: Path) -> Iterator[int]:
    """Yield what is left in each control group of this process, of version 1 and 2."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, name = line.split(":", 2)
        if controllers == "":
            names = ("memory.max", "memory.current", "inactive_file")
            yield from _left(root / "sys/fs/cgroup", name, names)
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            yield from _left(root / "sys/fs/cgroup/memory", name, names)


def _left(mount: Path, name: str, files: tuple[str, str, str]) -> Iterator[int]:
    """Yield what is left in a group and in all groups around it."""
    limit, usage, cached = files
    group = mount / name.lstrip("/")
    # Inside of a container its own group is often mounted in place of the root.
    groups = [group, *group.parents] if group.is_dir() else [mount]
    for folder in groups:
        allowed, used = _text(folder / limit).strip(), _text(folder / usage).strip()
        if allowed.isdecimal() and used.isdecimal() and int(allowed) < _UNLIMITED:
            statistics = dict(
                line.split(" ", 1) for line in _text(folder / "memory.stat").splitlines()
            )
            yield int(allowed) - int(used) + int(statistics.get(cached, 0))
        if folder == mount:
            return


def _limits(root: Path) -> Iterator[int]:
    """Yield what the limits of this process leave (`ulimit -v`, `ulimit -d`)."""
    try:
        import resource
    except ImportError:  # Windows
        return
    # Both counts are columns of the same file: all addresses, and those of data.
    for limit, column in ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5)):
        allowed, used = resource.getrlimit(limit)[0], _pages(root, column)
        if allowed != resource.RLIM_INFINITY and used is not None:
            yield allowed - used


def _pages(root: Path, column: int) -> int | None:
    """Return a number of `statm` in bytes."""
    numbers = _text(root / "proc/self/statm").split()
    return int(numbers[column]) * os.sysconf("SC_PAGE_SIZE") if numbers else None


def _text(path: Path) -> str:
    """Return what a file of the system says; "" if it is not there."""
    try:
        return path.read_text()
    except OSError:
        return ""
