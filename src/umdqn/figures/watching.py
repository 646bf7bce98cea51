"""Animations of an episode: the rendered environment, and the laws of all actions beside it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Shaped
from matplotlib.animation import PillowWriter
from matplotlib.axes import Axes

from umdqn.agents.agent import Agent, Learned
from umdqn.envs.hosted import HostEnv
from umdqn.errors import UmdqnError, check_count
from umdqn.figures.style import COLOURS, RETURN, panels, whole_picture
from umdqn.loops.compilation import kept_programs
from umdqn.loops.host_episodes import play_hosted
from umdqn.runs.build import environment
from umdqn.runs.run import Run
from umdqn.specs import AnyArray

SUFFIXES = (".gif", ".webp")
_POINTS = 201
_MOST_FRAMES = 150
_FRAMES_PER_SECOND = 12


class Scene(NamedTuple):
    """One step of an episode."""

    number: int
    picture: np.ndarray | None
    densities: np.ndarray
    """Of all actions, on a grid over the domain."""
    scores: np.ndarray
    """What the greedy choice compares."""


class Camera:
    """Records scenes of an episode, fewer per step the longer it is; always the last one."""

    def __init__(self, env: HostEnv, agent: Agent, learned: Learned):
        self._env, self._agent, self._learned = env, agent, learned
        self._count, self._every = 0, 1
        self._kept: list[Scene] = []
        self._last: Scene | None = None

    def record(self, observation: np.ndarray) -> None:
        """Record the scene before a step."""
        densities, scores = _views_program(self._agent)(self._learned, observation)
        picture = self._env.render()
        self._last = Scene(self._count, picture, np.asarray(densities), np.asarray(scores))
        if self._count % self._every == 0:
            self._kept.append(self._last)
        if len(self._kept) > _MOST_FRAMES:
            self._kept, self._every = self._kept[::2], 2 * self._every
        self._count += 1

    @property
    def scenes(self) -> list[Scene]:
        """The recorded scenes."""
        assert self._last is not None
        ends = self._kept[-1].number == self._last.number
        return self._kept if ends else [*self._kept, self._last]


def watch(run: Run, out: Path, seed: int | None = None, steps: int = 1_000) -> int:
    """Write an episode of a run's greedy policy as an animation; return its length."""
    check_count("steps", steps)
    if out.suffix not in SUFFIXES:
        raise UmdqnError(
            f"--out {out}: unknown animation format {out.suffix!r}; known: {', '.join(SUFFIXES)}"
        )
    # Some environments draw with a library that looks for a screen and loudspeakers.
    for driver in ("SDL_VIDEODRIVER", "SDL_AUDIODRIVER"):
        os.environ.setdefault(driver, "dummy")
    policy, first = run.policy(seed), run.spec.first_action
    env = environment(run.config).drawn()
    camera = Camera(env, run.agent, policy.learned)
    try:
        episodes = play_hosted(
            env, lambda seen: policy.predict(seen)[0] - first, policy.seed, steps, camera.record
        )
        episode = next(episodes)
    finally:
        env.close()
    scenes = camera.scenes
    if scenes[0].picture is None:
        raise UmdqnError(f"environment {run.config.env!r} draws no pictures (rgb_array)")
    _write(run, scenes, episode.actions, _totals(episode.rewards), out)
    return len(episode.rewards)


def _totals(rewards: list[float]) -> np.ndarray:
    """Return the undiscounted return before each step; after it for the last one."""
    totals = np.concatenate([[0.0], np.cumsum(rewards)])
    totals[-2] = totals[-1]
    return totals[:-1]


@kept_programs
def _views_program(agent: Agent) -> Callable[..., tuple[Array, Array]]:
    """Compile densities [actions, points] and scores [actions] of one observation."""

    def views(learned: Learned, observation: Shaped[AnyArray, "..."]) -> tuple[Array, Array]:
        laws = agent.laws(learned, jnp.asarray(observation))
        z = jnp.linspace(agent.domain.low, agent.domain.high, _POINTS)
        # Differences of a continuous CDF: a density for every law, also for those made of atoms.
        densities = jnp.gradient(laws.spread_cdf(z), z[1] - z[0], axis=-1)
        return jnp.asarray(densities), agent.scores(laws)

    return jax.jit(views)


def _write(
    run: Run, scenes: list[Scene], actions: list[int], totals: np.ndarray, out: Path
) -> None:
    figure, ((left, right),) = panels(1, 2, (9, 4))
    highest = float(np.quantile([scene.densities.max() for scene in scenes], 0.95))
    writer = PillowWriter(fps=_FRAMES_PER_SECOND)
    with whole_picture(out) as partial, writer.saving(figure, str(partial), dpi=80):
        for scene in scenes:
            left.clear()
            left.imshow(scene.picture)
            left.set_axis_off()
            left.set_title(f"return so far {totals[scene.number]:g}")
            _draw_laws(right, run, scene, actions[scene.number])
            right.set_ylim(0, max(highest, 1e-6) * 1.1)
            writer.grab_frame()


def _draw_laws(axis: Axes, run: Run, scene: Scene, taken: int) -> None:
    """Draw the density of every action; a dotted line where its score is."""
    domain = run.config.domain
    z = np.linspace(domain.low, domain.high, _POINTS)
    axis.clear()
    for action, name in enumerate(run.spec.action_names):
        colour = COLOURS[action % len(COLOURS)]
        label = f"{name} (taken)" if action == taken else name
        width = 2.2 if action == taken else 1.1
        axis.plot(z, scene.densities[action], color=colour, linewidth=width, label=label)
        axis.axvline(scene.scores[action], color=colour, linestyle=":", linewidth=1)
    axis.set(xlabel=RETURN, ylabel="density", xlim=(domain.low, domain.high))
    axis.legend(loc="upper left", frameon=False, fontsize=8)
    axis.grid(alpha=0.25)
