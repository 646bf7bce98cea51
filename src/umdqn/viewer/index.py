"""The list of runs: what each of them is, how far it is, and how well it does."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from pathlib import Path
from typing import Any, NamedTuple

from umdqn.agents.algorithms import ALGORITHMS
from umdqn.errors import UmdqnError
from umdqn.runs.formats import manifest_data
from umdqn.viewer.records import last_score
from umdqn.viewer.roots import NotFound, Roots

_CHECKPOINT = re.compile(r"(\d{10})\.json")
# A search may take this share of the time between two searches, so that training has the rest.
_SHARE = 0.02
_LEAST_SECONDS, _MOST_SECONDS = 1.0, 30.0
# Steps from which the recent pace is computed.
_SEEN = 8
# A running run is quiet if nothing was written for this long, or for so many evaluations.
_QUIET_SECONDS, _QUIET_EVALUATIONS = 180.0, 4.0

Stamp = tuple[int, int, int] | None
"""What changes when a file does: time, size and identity."""


class Known(NamedTuple):
    """What is known of a run, and the state of the files that it is known from."""

    stamps: tuple[Stamp, Stamp]
    summary: dict[str, Any]
    seen: tuple[tuple[int, float], ...] = ()
    """The last steps that were seen, and when they were written."""

    def followed_by(self, step: int, written: float) -> tuple[tuple[int, float], ...]:
        """Return the last steps with a new one, which stands alone if a resume went back."""
        before = self.seen[-1:] and self.seen[-1]
        if before and before[0] == step:
            return self.seen
        kept = self.seen if before and before[0] < step and before[1] < written else ()
        return (*kept, (step, written))[-_SEEN:]


class Index:
    """Keeps a summary of every run; files are read again only if they have changed."""

    def __init__(self, roots: Roots):
        self._roots = roots
        self._known: dict[str, Known] = {}
        self._searched, self._pause = -_MOST_SECONDS, 0.0

    def runs(self) -> list[dict[str, Any]]:
        """Return the summaries of all runs, the newest first."""
        begun = time.monotonic()
        if begun - self._searched >= self._pause:
            found = self._roots.search()
            self._known = {name: self._refreshed(name, path) for name, path in found.items()}
            self._searched = time.monotonic()
            pause = (self._searched - begun) / _SHARE
            self._pause = min(max(pause, _LEAST_SECONDS), _MOST_SECONDS)
        summaries = [_timed(known.summary) for known in self._known.values()]
        return sorted(summaries, key=lambda run: run["updated"] or 0, reverse=True)

    def run(self, name: str) -> dict[str, Any]:
        """Return the summary of one run, as it is now."""
        self._known[name] = self._refreshed(name, self._roots.run(name))
        return _timed(self._known[name].summary)

    def _refreshed(self, name: str, path: Path) -> Known:
        stamps = (_stamp(path / "manifest.json"), _stamp(path / "metrics.jsonl"))
        known = self._known.get(name)
        if known is not None and known.stamps == stamps:
            return known
        try:
            summary = self._summary(path, stamps)
        except (UmdqnError, OSError) as error:
            summary = _nothing() | {"status": "damaged", "error": str(error)}
        updated = max((stamp[0] / 1e9 for stamp in stamps if stamp), default=None)
        summary |= {"id": name, "name": _shown(path, self._roots), "updated": updated}
        found = Known(stamps, summary)
        if summary["status"] != "running" or updated is None:
            return found
        found = found._replace(seen=(known or found).followed_by(summary["step"], updated))
        return found._replace(summary=summary | _recent_pace(summary, found.seen))

    def _summary(self, path: Path, stamps: tuple[Stamp, Stamp]) -> dict[str, Any]:
        self._roots.file(path, "manifest.json")
        manifest = manifest_data(path)
        found = _described(manifest)
        try:
            newest = last_score(self._roots.file(path, "metrics.jsonl"))
        except NotFound:
            newest = None
        if newest is not None:
            found["score"] = newest[1]
            if found["status"] == "running":
                found["step"] = max(found["step"], newest[0])
        return found | _pace(manifest, found, stamps)


def _nothing() -> dict[str, Any]:
    names = ("env", "agent", "preset", "step", "steps", "seeds", "score", "rate", "group", "every")
    return dict.fromkeys(names) | {"remaining": None, "error": ""}


def _described(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return what a manifest says of its run, in the words of the list."""
    config = manifest["config"]
    try:
        rest = {name: value for name, value in config.items() if name not in ("seed", "seeds")}
        group = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()[:12]
        return _nothing() | {
            "status": manifest["status"],
            "env": str(config["env"]),
            "agent": _label(config),
            "preset": str(config["preset"]),
            "step": manifest["step"],
            "steps": int(config["steps"]),
            "seeds": int(config["seeds"]),
            "every": int(config["evaluation"]["every"]),
            "group": group,
            "error": str(manifest.get("reason", "")),
        }
    except (KeyError, TypeError, ValueError) as error:
        raise UmdqnError(f"the manifest lacks a field: {error}") from None


def _label(config: dict[str, Any]) -> str:
    """Return the agent's name; representation and metric instead where they are not the agent's."""
    named = ALGORITHMS.get(config["agent"])
    names = [config[kind]["name"] for kind in ("representation", "metric")]
    if named is None or names == [named.representation, named.metric]:
        return str(config["agent"])
    return " + ".join(names)


def _pace(
    manifest: dict[str, Any], found: dict[str, Any], stamps: tuple[Stamp, Stamp]
) -> dict[str, Any]:
    """Return steps a second over all seeds, and for a run in progress the time left."""
    seconds, step = float(manifest["seconds"]), found["step"]
    running = found["status"] == "running"
    if running and step > manifest["step"] and all(stamps):
        written, recorded = (stamp[0] / 1e9 for stamp in stamps if stamp)
        seconds += max(recorded - written, 0.0)
    if seconds <= 0 or step <= 0:
        return {}
    a_second = step / seconds
    remaining = (found["steps"] - step) / a_second if running else None
    return {"rate": a_second * found["seeds"], "remaining": remaining}


def _recent_pace(summary: dict[str, Any], seen: tuple[tuple[int, float], ...]) -> dict[str, Any]:
    """Return the pace since the first of some steps: without the time that compilation took."""
    (first, begun), (last, ended) = seen[0], seen[-1]
    if last <= first:
        return {}
    a_second = (last - first) / (ended - begun)
    remaining = (summary["steps"] - last) / a_second
    return {"rate": a_second * summary["seeds"], "remaining": remaining}


def _timed(summary: dict[str, Any]) -> dict[str, Any]:
    """Return a summary as of now: a run that has long written nothing may have been killed."""
    if summary["status"] != "running" or not summary["updated"]:
        return summary
    silent = time.time() - summary["updated"]
    pace = summary["rate"] / summary["seeds"] if summary["rate"] else 0.0
    patience = _QUIET_EVALUATIONS * summary["every"] / pace if pace else 0.0
    quiet = silent > max(_QUIET_SECONDS, patience)
    return summary | ({"status": "quiet", "remaining": None} if quiet else {})


def _stamp(path: Path) -> Stamp:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _shown(path: Path, roots: Roots) -> str:
    """Return the name that people read: it has no characters that JSON cannot hold."""
    root = next(root for root in roots.paths if path.is_relative_to(root))
    inner = path.relative_to(root).as_posix()
    name = root.name if inner == "." else inner
    return os.fsencode(name).decode(errors="replace")


def checkpoint_steps(roots: Roots, run: Path) -> list[int]:
    """Return the steps of the complete checkpoints of a run, in ascending order."""
    folder = run / "checkpoints"
    if folder.is_symlink():
        raise UmdqnError(f"{folder} is a symbolic link, which is not followed")
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    found = [match for match in map(_CHECKPOINT.fullmatch, names) if match]
    return sorted(int(match[1]) for match in found)
