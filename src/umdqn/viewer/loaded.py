"""Runs that are held in memory: their agents, warm programs and the checkpoints looked at."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from umdqn.agents.state import Learned
from umdqn.errors import InvalidField, UmdqnError
from umdqn.runs.build import build_agent
from umdqn.runs.checkpoints import Checkpoints
from umdqn.runs.formats import manifest_data
from umdqn.viewer.roots import Roots
from umdqn.viewer.safety import foreign_environment, readable
from umdqn.viewer.views import program, told

_MOST_RUNS, _MOST_CHECKPOINTS = 6, 100

K = TypeVar("K")
V = TypeVar("V")


class Recent(OrderedDict[K, V]):
    """A dictionary that keeps what was used last."""

    def __init__(self, most: int):
        super().__init__()
        self._most = most

    def recall(self, key: K) -> V | None:
        """Return what is kept under a key, and count that as a use."""
        if key in self:
            self.move_to_end(key)
        return self.get(key)

    def keep(self, key: K, value: V) -> V:
        """Keep a value; the one that was used longest ago goes."""
        self[key] = value
        if len(self) > self._most:
            self.popitem(last=False)
        return value


class Loaded:
    """The agents of a run at any of its checkpoints, without the environment."""

    def __init__(self, roots: Roots, path: Path, manifest: dict[str, Any]):
        self.path, self._roots = path, roots
        self.config, self.spec = readable(path, manifest)
        self.no_environment = foreign_environment(manifest)
        """Why there are neither episodes nor calibration; None if there are."""
        self.agent = build_agent(self.config, self.spec).refined()
        like = jax.eval_shape(self.agent.fresh, jax.random.key(0))
        self._likes = dict.fromkeys(self.config.all_seeds, like)
        self._checkpoints = Checkpoints(path)
        self._kept: Recent[tuple[int, int], dict[int, Learned]] = Recent(_MOST_CHECKPOINTS)
        self._lock = threading.Lock()

    @property
    def expects(self) -> bool:
        """Whether the agent learns expectations only, no laws."""
        return self.agent.representation.gives == {"mean"}

    @property
    def actions(self) -> list[str]:
        """Names of the actions."""
        names = self.spec.action_names
        first = self.spec.first_action
        return list(names) or [f"action {first + i}" for i in range(self.spec.num_actions)]

    def learned(self, step: int, seed: int) -> Learned:
        """Return what a seed had learned at a checkpoint."""
        if seed not in self._likes:
            known = ", ".join(map(str, self._likes))
            raise InvalidField("seed", seed, f"one of {known}")
        index = self._roots.file(self.path, "checkpoints", f"{step:010d}.json")
        self._roots.file(self.path, "checkpoints", f"{step:010d}.safetensors")
        key = (step, index.lstat().st_mtime_ns)
        with self._lock:
            found = self._kept.recall(key)
            if found is None:
                arrays = self._checkpoints.agents(step, self._likes)
                found = {each: jax.tree.map(jnp.asarray, one) for each, one in arrays.items()}
                self._kept.keep(key, found)
        return found[seed]

    def laws(self, step: int, seed: int, observation: np.ndarray) -> dict[str, Any]:
        """Return the laws of all actions for an observation, as JSON data."""
        found, compared = program(self.agent)(self.learned(step, seed), observation)
        scores = np.asarray(compared)
        data = told(found, self.actions)
        for law, score in zip(data["laws"], scores.tolist(), strict=True):
            law["score"] = score if np.isfinite(score) else None
        return data | {"greedy": int(scores.argmax()), "expectations": self.expects}

    def warm(self, step: int) -> None:
        """Compile the program of laws, so that the first click is as fast as any other."""
        seen = self.spec.observation
        self.laws(step, self.config.all_seeds[0], np.zeros(seen.shape, seen.dtype))


class Shelf:
    """The runs that were looked at last."""

    def __init__(self, roots: Roots):
        self._roots = roots
        self._runs: Recent[tuple[str, str], Loaded] = Recent(_MOST_RUNS)
        self._lock = threading.Lock()

    def run(self, name: str) -> Loaded:
        """Return a run by its id, loaded anew if its configuration has changed."""
        path = self._roots.run(name)
        self._roots.file(path, "manifest.json")
        manifest = manifest_data(path)
        key = (name, json.dumps(manifest["config"], sort_keys=True))
        with self._lock:
            found = self._runs.recall(key)
            if found is None:
                found = self._runs.keep(key, self._loaded(path, manifest))
        return found

    def _loaded(self, path: Path, manifest: dict[str, Any]) -> Loaded:
        try:
            return Loaded(self._roots, path, manifest)
        except (KeyError, TypeError) as error:
            raise UmdqnError(f"{path} is corrupt: {error}") from None
