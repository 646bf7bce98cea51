"""Helpers for tests of runs and sweeps: checksums, child processes, listening sockets."""

import contextlib
import hashlib
import ipaddress
import os
import subprocess
from pathlib import Path

# A run of a few seconds with several checkpoints and evaluations, and a replay that wraps.
SMALL = {
    "steps": 1_000,
    "replay.warmup": 100,
    "replay.capacity": 300,
    "evaluation.every": 250,
    "evaluation.episodes": 4,
    "checkpoint_every": 200,
    "chunk": 100,
    "torso.widths": "8,8",
    # One that falls over the run would make longer runs differ from their first step on.
    "optimiser.schedule": "constant",
}


def digest(run) -> dict[str, str]:
    """Return checksums of the files that hold the end of a run."""
    path = run.path
    names = [
        "metrics.jsonl",
        f"checkpoints/{run.step:010d}.safetensors",
        f"checkpoints/{run.step:010d}.loop.safetensors",
        *(str(p.relative_to(path)) for p in sorted((path / "replay").iterdir())),
    ]
    return {name: hashlib.sha256((path / name).read_bytes()).hexdigest() for name in names}


def options(fields) -> list[str]:
    """Return fields as command-line options."""
    return [part for name, value in fields.items() for part in (f"--{name}", str(value))]


def children(out) -> list[int]:
    """Return the ids of the processes that run the jobs of a sweep."""
    found = subprocess.run(
        ["pgrep", "-f", f"umdqn.sweeps {out}"], capture_output=True, text=True
    ).stdout
    return [int(line) for line in found.split()]


def descendants(pid) -> set[int]:
    """Return the ids of a process and of all its descendants."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            parents[int(path.parent.name)] = int(fields[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def listening(pids) -> set[str]:
    """Return the addresses on which processes listen."""
    sockets = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for path in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    sockets.add(os.readlink(path))
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == "0A" and f"socket:[{inode}]" in sockets:
                words = bytes.fromhex(local.partition(":")[0])
                address = b"".join(words[i : i + 4][::-1] for i in range(0, len(words), 4))
                shown = ipaddress.ip_address(address)
                found.add(str(getattr(shown, "ipv4_mapped", None) or shown))
    return found
