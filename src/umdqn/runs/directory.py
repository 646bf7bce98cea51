"""The directory of a run: manifest, metrics, checkpoints."""

from __future__ import annotations

import contextlib
import datetime
import os
import platform
import re
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from umdqn import __version__
from umdqn.envs.positions import MOST_REPLAYED
from umdqn.errors import UmdqnError, notice
from umdqn.loops.machine import peak_memory
from umdqn.runs.build import environment, is_compiled
from umdqn.runs.checkpoints import Checkpoints
from umdqn.runs.config import Config
from umdqn.runs.fields import to_dict
from umdqn.runs.files import is_temporary, locked, read_sealed, write_sealed
from umdqn.runs.formats import FORMAT, FORMAT_VERSION
from umdqn.runs.manifests import read_manifest
from umdqn.runs.records import Mark, Record, Records
from umdqn.runs.trust import Untrusted, signed
from umdqn.specs import EnvSpec

PROMISES = {
    True: "bit for bit, on the same machine and versions",
    False: "bit for bit, if the environment's seeds determine it and no episode is longer than "
    f"{MOST_REPLAYED:,} steps",
}
"""How exactly a run can be resumed, by whether its environment is compiled."""
MOST_OLDER = 64
"""Most checkpoints kept besides those that can be resumed from; they hold the networks only."""
_PACKAGES = ("jax", "jaxlib", "equinox", "optax", "numpy", "gymnasium")


def versions() -> dict[str, str]:
    """Return the versions of the packages that determine what a run computes."""
    packages = {name: version(name) for name in _PACKAGES}
    return {"umdqn": __version__} | packages | {"python": platform.python_version()}


class RunDirectory:
    """Reads and writes one run."""

    def __init__(self, path: Path):
        self.path = path
        self.checkpoints = Checkpoints(path)
        self.records = Records(path)

    @property
    def manifest_path(self) -> Path:
        return self.path / "manifest.json"

    @classmethod
    def claim(cls, config: Config, out: Path | None) -> RunDirectory:
        """Return a directory for a new run; raises if it holds anything."""
        directory = cls(_named(out) if out else _fresh(_slug(f"{config.env}-{config.agent}")))
        directory._check_vacant()
        return directory

    def begin(self, config: Config) -> None:
        """Start a new run in a vacant directory whose lock the caller holds."""
        # Another process may have claimed and used the same directory in the meantime.
        self._check_vacant()
        try:
            self.checkpoints.make()
            self.checkpoints.clean(config.checkpoint_keep)
            self.records.make()
        except OSError as error:
            raise UmdqnError(f"cannot write in {self.path}: {error.strerror}") from error
        self.write_manifest(config, status="running", step=0)

    def _check_vacant(self) -> None:
        if not self.vacant():
            raise UmdqnError(f"--out {self.path}: not empty, and a run never overwrites anything")

    def vacant(self) -> bool:
        """Return whether there is nothing, or only what a start that failed has left."""
        try:
            return not self.path.exists() or all(map(_left_by_a_start, self.path.iterdir()))
        except OSError as error:
            raise UmdqnError(f"cannot read {self.path}: {error.strerror}") from error

    def fail(self, reason: str) -> None:
        """Record in the manifest that the run failed; does nothing if that cannot be written.

        A finished run that could not be extended is still finished.
        """
        done = self.checkpoints.steps()
        with contextlib.suppress(UmdqnError):
            manifest = read_sealed(self.manifest_path)
            if manifest["status"] != "finished":
                step = done[-1] if done else manifest["step"]
                ended = {"status": "failed", "step": step, "reason": reason}
                write_sealed(self.manifest_path, manifest | ended)

    def write_manifest(
        self, config: Config, status: str, step: int, seconds: float = 0.0, reason: str = ""
    ) -> None:
        """Write the manifest: configuration, progress, time and memory taken.

        The peak of memory is that of this process; earlier processes of a resumed run had others.
        """
        manifest: dict[str, Any] = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "status": status,
            "step": step,
            "seconds": round(seconds, 1),
            "peak_memory": peak_memory(),
            "seeds": list(config.all_seeds),
            "config": to_dict(config),
            "metrics": self.records.mark(),
            "resume": PROMISES[is_compiled(config)],
            "environment": to_dict(environment(config).spec),
            "versions": versions(),
        }
        manifest |= signed([manifest["config"]])
        write_sealed(self.manifest_path, manifest | ({"reason": reason} if reason else {}))

    def read_manifest(self) -> tuple[Config, EnvSpec, dict[str, Any]]:
        """Return the configuration, the environment's specification, and the whole manifest."""
        return read_manifest(self.path)

    def finished(self, config: Config) -> bool:
        """Return whether this is a finished, readable run of a configuration."""
        try:
            found, _, manifest = self.read_manifest()
        except Untrusted:
            raise
        except UmdqnError:
            return False
        return found == config and manifest["status"] == "finished"

    def read_metrics(self) -> list[Record]:
        """Return all metrics; raises if those that the manifest covers have changed."""
        *_, manifest = self.read_manifest()
        mark = manifest.get("metrics")
        return self.records.read(mark and Mark(*mark), manifest["status"] == "finished")

    def best_steps(self, seeds: Iterable[int]) -> dict[int, int]:
        """Return the kept checkpoint with the largest mean return, by seed; the latest on a tie."""
        missing = self.checkpoints.missing(self.read_manifest()[2]["step"])
        if missing is not None:
            notice(f"{missing}; the best of the other checkpoints is used")
        kept = set(self.checkpoints.steps())
        best: dict[int, tuple[float, int]] = {}
        for record in self.read_metrics():
            if record["step"] in kept:
                found = (record["return_mean"], record["step"])
                best[record["seed"]] = max(best.get(record["seed"], found), found)
        try:
            return {seed: best[seed][1] for seed in seeds}
        except KeyError:
            raise UmdqnError(f"{self.records.path} has no evaluation at a checkpoint") from None

    def thin(self, config: Config) -> None:
        """Delete every second old checkpoint once there are many, but never a seed's best."""
        older = self.checkpoints.steps()[: -config.checkpoint_keep]
        if len(older) <= MOST_OLDER:
            return
        best: set[int] = set()
        with contextlib.suppress(UmdqnError):
            best = set(self.best_steps(config.all_seeds).values())
        self.checkpoints.forget(set(older[1::2]) - best)

    def locked(self) -> contextlib.AbstractContextManager[None]:
        """Take the exclusive lock of this directory, released when the process exits."""
        return locked(self.path)


def _left_by_a_start(path: Path) -> bool:
    """Return whether this is an empty file or directory that a run makes before its manifest."""
    if path.is_symlink():
        return False
    if path.is_dir():
        return path.name in ("checkpoints", "replay") and not any(path.iterdir())
    empty = path.name in ("metrics.jsonl", "lock") and path.stat().st_size == 0
    return empty or is_temporary(path)


def _slug(name: str) -> str:
    """Return a name that a directory can have."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)


def _named(path: Path) -> Path:
    """Make the directory that the user named."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UmdqnError(f"--out {path}: cannot make this directory: {error.strerror}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise UmdqnError(f"--out {path}: not writable")
    return path


def _fresh(name: str) -> Path:
    """Make a directory under `runs/` that did not exist; safe against concurrent starts."""
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    for attempt in range(1, 10_000):
        suffix = "" if attempt == 1 else f"-{attempt}"
        path = Path("runs") / f"{name}-{stamp}{suffix}"
        try:
            path.parent.mkdir(exist_ok=True)
            path.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise UmdqnError(f"cannot make {path}: {error.strerror}") from error
        return path
    raise UmdqnError(f"cannot find a free name for a run like {name}-{stamp} under runs/")
