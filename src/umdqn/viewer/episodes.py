"""Episodes of a run's policy, played once and kept in memory to step through."""

from __future__ import annotations

import io
import threading
from typing import Any, NamedTuple

import numpy as np

from umdqn.errors import UmdqnError
from umdqn.figures.watching import Scene, film
from umdqn.runs.build import environment
from umdqn.runs.predict import Policy
from umdqn.viewer.loaded import Loaded, Recent
from umdqn.viewer.numbers import plain
from umdqn.viewer.roots import NotFound

_MOST_EPISODES = 8
_MOST_STEPS = 1_000

Name = tuple[str, int, int, int]
"""Run, checkpoint, seed, and number of the episode."""


class Recording(NamedTuple):
    """An episode as it is stepped through."""

    scenes: list[Scene]
    pictures: list[bytes | None]
    actions: list[int]
    rewards: list[float]
    terminated: bool


class Episodes:
    """The episodes that were played last."""

    def __init__(self) -> None:
        self._kept: Recent[Name, Recording] = Recent(_MOST_EPISODES)
        self._lock = threading.Lock()

    def play(self, name: Name, run: Loaded) -> Recording:
        """Return an episode, played unless it is kept."""
        if run.no_environment is not None:
            raise UmdqnError(f"no episodes: {run.no_environment}")
        with self._lock:
            found = self._kept.recall(name)
            if found is None:
                found = self._kept.keep(name, _played(name, run))
        return found


def _played(name: Name, run: Loaded) -> Recording:
    _, step, seed, number = name
    policy = Policy(run.agent, run.learned(step, seed), seed=seed + number)
    episode, scenes = film(environment(run.config), policy, _MOST_STEPS)
    pictures = [None if scene.picture is None else _png(scene.picture) for scene in scenes]
    scenes = [scene._replace(picture=None) for scene in scenes]
    return Recording(scenes, pictures, episode.actions, episode.rewards, episode.terminated)


def _png(picture: np.ndarray) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.asarray(picture, np.uint8)).save(file, "PNG")
    return file.getvalue()


def told(recording: Recording) -> dict[str, Any]:
    """Return an episode as JSON data, without pictures and large observations."""
    totals = np.concatenate([[0.0], np.cumsum(recording.rewards)])
    return {
        "steps": len(recording.actions),
        "terminated": recording.terminated,
        "total": float(totals[-1]),
        "scenes": [
            {
                "number": scene.number,
                "action": recording.actions[scene.number],
                "reward": float(recording.rewards[scene.number]),
                "before": float(totals[scene.number]),
                "picture": picture is not None,
                "observation": plain(scene.observation) if scene.observation.ndim == 1 else None,
            }
            for scene, picture in zip(recording.scenes, recording.pictures, strict=True)
        ],
    }


def scene_of(recording: Recording, at: int) -> tuple[Scene, bytes | None]:
    """Return one scene of an episode, and its picture."""
    if not 0 <= at < len(recording.scenes):
        raise NotFound(f"the episode has {len(recording.scenes)} scenes, none is number {at}")
    return recording.scenes[at], recording.pictures[at]
