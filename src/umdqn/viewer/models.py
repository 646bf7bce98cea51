"""What the page asks about laws: their curves, episodes, calibration. Imports JAX."""

from __future__ import annotations

from typing import Any

import numpy as np

from umdqn.errors import InvalidField, UmdqnError
from umdqn.runs.fields import name_of
from umdqn.viewer.asked import Asked
from umdqn.viewer.calibrations import Reports
from umdqn.viewer.episodes import Episodes, Recording, scene_of, told
from umdqn.viewer.exact import exact, policy_of_truth
from umdqn.viewer.index import checkpoint_steps
from umdqn.viewer.loaded import Loaded, Shelf
from umdqn.viewer.roots import NotFound, Roots
from umdqn.viewer.states import every_state, observation, picker
from umdqn.viewer.views import scores_program

_MOST_EPISODES = 2_000


class Models:
    """Agents of runs, and what they were asked."""

    def __init__(self, roots: Roots):
        self._roots, self._shelf = roots, Shelf(roots)
        self._episodes, self._reports = Episodes(), Reports()

    def open(self, asked: Asked) -> dict[str, Any]:
        """Load a run and compile its laws; return how its states are chosen."""
        run = self._loaded(asked)
        run.warm(self._step(asked))
        return {
            "picker": picker(run.spec),
            "actions": run.actions,
            "expectations": run.expects,
            "decision": name_of("decision", run.config.decision),
            "no_environment": run.no_environment,
            "truth": policy_of_truth(run),
            "discount": run.config.discount,
        }

    def laws(self, asked: Asked) -> dict[str, Any]:
        """Return the laws of all actions in a state, at a checkpoint."""
        run, step, seed = self._loaded(asked), self._step(asked), self._seed(asked)
        found = run.laws(step, seed, self._observation(asked, run, step, seed))
        return found | {"step": step, "seed": seed}

    def map(self, asked: Asked) -> dict[str, Any]:
        """Return the greedy action and its score in every cell of a grid."""
        run, step, seed = self._loaded(asked), self._step(asked), self._seed(asked)
        found = every_state(run.spec)
        if found is None:
            return {"states": {}}
        states, observations = found
        scores = np.asarray(scores_program(run.agent)(run.learned(step, seed), observations))
        best = zip(states, scores.argmax(axis=1).tolist(), scores.max(axis=1).tolist(), strict=True)
        return {"states": {state: {"greedy": one, "score": value} for state, one, value in best}}

    def exact(self, asked: Asked) -> dict[str, Any]:
        """Return the exact laws in a state, where they are known."""
        run, step, seed = self._loaded(asked), self._step(asked), self._seed(asked)
        return exact(run, step, seed, self._observation(asked, run, step, seed))

    def episode(self, asked: Asked) -> dict[str, Any]:
        """Play an episode, unless it was played already."""
        return told(self._episode(asked))

    def picture(self, asked: Asked) -> bytes:
        """Return the picture of a scene of an episode."""
        picture = scene_of(self._episode(asked), asked.whole("at"))[1]
        if picture is None:
            raise NotFound("this environment draws no pictures")
        return picture

    def calibration(self, asked: Asked) -> dict[str, Any]:
        """Compare laws with realised returns."""
        episodes = asked.whole("episodes", 200, _MOST_EPISODES)
        if episodes < 2:
            raise InvalidField("episodes", episodes, f"from 2 to {_MOST_EPISODES}")
        name, run = asked.text("run"), self._loaded(asked)
        return self._reports.calibrate(name, run, self._step(asked), episodes)

    def _loaded(self, asked: Asked) -> Loaded:
        return self._shelf.run(asked.text("run"))

    def _step(self, asked: Asked) -> int:
        run = self._roots.run(asked.text("run"))
        kept = checkpoint_steps(self._roots, run)
        if not kept:
            raise UmdqnError(f"{run} has no checkpoint yet")
        step = asked.whole("step", kept[-1])
        if step not in kept:
            raise NotFound(f"there is no checkpoint at step {step} any more")
        return step

    def _seed(self, asked: Asked) -> int:
        return asked.whole("seed", self._loaded(asked).config.all_seeds[0])

    def _observation(self, asked: Asked, run: Loaded, step: int, seed: int) -> np.ndarray:

        if asked.has("at"):
            return scene_of(self._episode(asked), asked.whole("at"))[0].observation
        return observation(run.spec, asked.text("state"))

    def _episode(self, asked: Asked) -> Recording:
        """Return the episode that a request names: by checkpoint and number."""
        run = self._loaded(asked)
        played = asked.whole("played", self._step(asked))
        number = asked.whole("episode", 0, 9_999)
        name = (asked.text("run"), played, self._seed(asked), number)
        return self._episodes.play(name, run)
