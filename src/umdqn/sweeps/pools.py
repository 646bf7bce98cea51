"""Pools that run the jobs of a sweep: processes on this machine, or a Ray cluster."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol, runtime_checkable

from umdqn.errors import InvalidField, UmdqnError, check, one_line
from umdqn.extras import missing
from umdqn.loops.available import available_memory, resident_memory
from umdqn.loops.footprint import gigabytes
from umdqn.loops.machine import available_cores
from umdqn.runs.build import memory_taken
from umdqn.runs.config import Config
from umdqn.sweeps.work import Outcome, work

# Run in another process, which can be stopped: Ray itself waits for minutes.
_PROBE = "import sys, ray; ray.init(sys.argv[1], log_to_driver=False, logging_level='ERROR')"
_PATIENCE = 60.0
# Asks a process to save and stop; Windows can only end it, and it resumes from its checkpoint.
_STOP = signal.SIGINT if os.name == "posix" else signal.SIGTERM


@runtime_checkable
class Pool(Protocol):
    """Runs jobs side by side."""

    def check(self, configs: Sequence[Config]) -> None:
        """Raise if trainings that would run side by side take more memory than there is."""
        ...

    @property
    def free(self) -> int:
        """Number of jobs that can start now."""
        ...

    def submit(self, name: str) -> None:
        """Start a job."""
        ...

    def ended(self) -> dict[str, Outcome]:
        """Return the outcomes of jobs that have ended since the last call."""
        ...

    def interrupt(self) -> None:
        """Ask all jobs to save and stop."""
        ...

    def close(self) -> None:
        """Stop all jobs that still run."""
        ...


class _Child(NamedTuple):
    process: subprocess.Popen[bytes]
    said: IO[bytes]
    complained: IO[bytes]


class LocalPool:
    """One process per job; by default as many at a time as there are cores."""

    def __init__(self, root: Path, workers: int | None = None):
        self._root = root
        self._workers = workers or available_cores()
        self._children: dict[str, _Child] = {}

    def check(self, configs: Sequence[Config]) -> None:
        available = available_memory()
        if available is None:
            return
        # Every process holds about what this one does: the same libraries.
        sizes = [memory_taken(config).total + resident_memory() for config in configs]
        largest = list(itertools.accumulate(sorted(sizes, reverse=True)[: self._workers]))
        most = max(sum(size <= available for size in largest), 1)
        if largest[-1] > available:
            raise InvalidField(
                "workers",
                self._workers,
                f"runs side by side take about {gigabytes(largest[-1])} of memory and "
                f"{gigabytes(available)} are available: at most {most}",
            )

    @property
    def free(self) -> int:
        return self._workers - len(self._children)

    def submit(self, name: str) -> None:
        # Files, not pipes: an environment may print more than a pipe holds.
        said, complained = self._output(), self._output()
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "umdqn.sweeps", str(self._root), name],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=complained,
            # Ctrl-C then reaches the driver only, which passes it on.
            start_new_session=True,
        )
        self._children[name] = _Child(process, said, complained)

    def _output(self) -> IO[bytes]:
        """Open a file beside the runs: the folder for temporary files may be full."""
        return tempfile.TemporaryFile(prefix=".", dir=self._root)

    def ended(self) -> dict[str, Outcome]:
        over = {n: child for n, child in self._children.items() if child.process.poll() is not None}
        for name in over:
            del self._children[name]
        return {name: _outcome(child) for name, child in over.items()}

    def interrupt(self) -> None:
        for child in self._children.values():
            child.process.send_signal(_STOP)

    def close(self) -> None:
        for child in self._children.values():
            child.process.kill()
            child.process.wait()
        self._children.clear()


def _outcome(child: _Child) -> Outcome:
    """Return the outcome that a process printed, or the reason why it printed none."""
    assert child.process.stdin is not None
    child.process.stdin.close()
    said, complained = (_last_line(file) for file in (child.said, child.complained))
    try:
        return Outcome.from_json(json.loads(said))
    except (ValueError, TypeError):
        code = child.process.returncode
        cause = f"signal {-code}" if code < 0 else f"exit code {code}"
        last = f": {complained}" if complained else ""
        return Outcome("lost", f"its process ended with {cause}{last}")


def _last_line(file: IO[bytes]) -> str:
    """The last line of a file, which is closed."""
    with file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(end - 10_000, 0))
        lines = file.read().decode(errors="replace").splitlines()
    return lines[-1] if lines else ""


class RayPool:
    """One task a job, one CPU a task, on a Ray cluster whose nodes share the file system."""

    def __init__(self, root: Path, address: str):
        known = address != "" and not address.startswith("ray://")
        check(known, "ray", address, "local, auto, or HOST:PORT of the cluster's head")
        if address == "local":
            # Else Ray takes the address by which other machines know this one.
            os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        self._ray = _ray()
        self._root = root.resolve()
        self._connect(address)
        remote = self._ray.remote(max_retries=0, max_calls=1, num_cpus=1)
        self._work: Any = remote(_work_on_ray)
        self._tasks: dict[Any, str] = {}

    def _connect(self, address: str) -> None:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if address == "local":
            # A cluster of one machine must not listen on the network.
            options |= {
                "address": "local",
                "include_dashboard": False,
                "_node_ip_address": "127.0.0.1",
                "num_cpus": available_cores(),
            }
        else:
            _check_reachable(address)
            options |= {"address": address}
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            with warnings.catch_warnings():
                # Harmless here: Ray forks before JAX has threads.
                warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
                self._ray.init(**options)
        except Exception as error:
            raise _unreachable(address, one_line(error)) from error

    def check(self, configs: Sequence[Config]) -> None:
        # Only the nodes know how much memory they have: every training checks before it starts.
        return

    @property
    def free(self) -> int:
        # Two tasks a CPU keep every node busy; Ray holds back what does not fit.
        cpus = int(self._ray.cluster_resources().get("CPU", 0))
        return max(2 * max(cpus, 1) - len(self._tasks), 0)

    def submit(self, name: str) -> None:
        self._tasks[self._work.remote(str(self._root), name)] = name

    def ended(self) -> dict[str, Outcome]:
        if not self._tasks:
            return {}
        done, _ = self._ray.wait(list(self._tasks), num_returns=len(self._tasks), timeout=0)
        return {self._tasks.pop(task): self._result(task) for task in done}

    def _result(self, task: Any) -> Outcome:
        try:
            return Outcome.from_json(self._ray.get(task))
        except self._ray.exceptions.RayError as error:
            return Outcome("lost", one_line(error))

    def interrupt(self) -> None:
        for task in self._tasks:
            self._ray.cancel(task, force=False)

    def close(self) -> None:
        self._ray.shutdown()


def _unreachable(address: str, reason: str) -> UmdqnError:
    return UmdqnError(f"--ray {address}: cannot reach a Ray cluster: {reason}")


def _check_reachable(address: str) -> None:
    """Raise quickly if no cluster answers; Ray itself retries for minutes and prints."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit() or "/" in address:
        return
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, OverflowError) as error:
        raise _unreachable(address, one_line(error)) from error
    try:
        command = [sys.executable, "-P", "-c", _PROBE, address]
        probe = subprocess.run(
            command, capture_output=True, timeout=_PATIENCE, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise _unreachable(address, f"no answer within {_PATIENCE:g} seconds") from None
    if probe.returncode != 0:
        lines = probe.stderr.decode(errors="replace").split("\n")
        raise _unreachable(address, next(filter(None, map(str.strip, reversed(lines))), ""))


def _work_on_ray(root: str, name: str) -> dict[str, Any]:
    return work(Path(root), name)._asdict()


def _ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise missing("--ray", "ray") from None
    return ray


MakePool = Callable[[Path], Pool]
