"""Animations of an episode: the rendered environment, and the laws of all actions beside it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
from jaxtyping import Array, Shaped
from matplotlib.animation import AbstractMovieWriter, FFMpegWriter, PillowWriter
from matplotlib.axes import Axes

from umdqn.agents.agent import Agent
from umdqn.agents.state import Learned
from umdqn.envs.entry import Entry
from umdqn.envs.hosted import HostEnv
from umdqn.errors import UmdqnError, check_count, notice
from umdqn.extras import missing
from umdqn.figures.style import COLOURS, RETURN, panels, whole_picture
from umdqn.loops.compilation import kept_programs
from umdqn.loops.host_episodes import HostEpisode, play_hosted
from umdqn.runs.build import environment
from umdqn.runs.predict import Policy
from umdqn.runs.run import Run
from umdqn.specs import AnyArray
from umdqn.text import drawn

SUFFIXES = (".gif", ".webp", ".mp4")
_POINTS = 401
# The range of a picture holds all but this share of mass on either side of every law, and a margin.
_TAIL = 0.005
_MARGIN = 0.1
# Relative to where laws lie, the narrowest range that is drawn.
_NARROWEST = 1e-3
_MOST_FRAMES = 150
_FRAMES_PER_SECOND = 12


class Scene(NamedTuple):
    """One step of an episode."""

    number: int
    picture: np.ndarray | None
    observation: np.ndarray


class Camera:
    """Records scenes of an episode, fewer per step the longer it is; always the last one."""

    def __init__(self, env: HostEnv | None):
        self._env = env
        self._count, self._every = 0, 1
        self._kept: list[Scene] = []
        self._last: Scene | None = None

    def record(self, observation: np.ndarray) -> None:
        """Record the scene before a step."""
        picture = None if self._env is None else self._env.render()
        self._last = Scene(self._count, picture, np.array(observation))
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


def watch(
    run: Run, out: Path, seed: int | None = None, steps: int = 1_000, render: bool = True
) -> int:
    """Write an episode of a run's greedy policy as an animation; return its length.

    Laws are drawn alone if the environment draws no pictures, or if not `render`.
    """
    check_count("steps", steps)
    if out.suffix not in SUFFIXES:
        raise UmdqnError(
            f"--out {out}: unknown animation format {out.suffix!r}; known: {', '.join(SUFFIXES)}"
        )
    writer = _writer(out.suffix)
    policy = run.policy(seed)
    episode, scenes = film(environment(run.config), policy, steps, render)
    if render and scenes[0].picture is None:
        notice(f"environment {run.config.env!r} draws no pictures (rgb_array): laws alone")
    laws = _laws(run.agent, policy.learned, scenes)
    _write(run, writer, scenes, laws, episode.actions, _totals(episode.rewards), out)
    return len(episode.rewards)


def film(
    entry: Entry, policy: Policy, steps: int, render: bool = True
) -> tuple[HostEpisode, list[Scene]]:
    """Play an episode of a policy and record it, with pictures if asked; stop after some steps."""
    # Some environments draw with a library that looks for a screen and loudspeakers.
    for driver in ("SDL_VIDEODRIVER", "SDL_AUDIODRIVER"):
        os.environ.setdefault(driver, "dummy")
    first = policy.agent.spec.first_action
    env = entry.drawn() if render else entry.hosted(1)
    camera = Camera(env if render else None)
    try:
        episodes = play_hosted(
            env, lambda seen: policy.predict(seen)[0] - first, policy.seed, steps, camera.record
        )
        return next(episodes), camera.scenes
    finally:
        env.close()


def _totals(rewards: list[float]) -> np.ndarray:
    """Return the undiscounted return before each step; after it for the last one."""
    totals = np.concatenate([[0.0], np.cumsum(rewards)])
    totals[-2] = totals[-1]
    return totals[:-1]


class Laws(NamedTuple):
    """The laws of all actions in every scene."""

    z: np.ndarray
    densities: np.ndarray
    """[scenes, actions, points]."""
    scores: np.ndarray
    """What the greedy choice compares: [scenes, actions]."""


def _laws(agent: Agent, learned: Learned, scenes: list[Scene]) -> Laws:
    """Return densities on one grid, which holds nearly all mass of all scenes."""
    ends_of, views_of = _programs(agent)
    seen = [scene.observation for scene in scenes]
    ends = np.array([ends_of(learned, each) for each in seen])
    low, high = float(ends[:, 0].min()), float(ends[:, 1].max())
    margin = _MARGIN * max(high - low, _NARROWEST * max(abs(low), abs(high)), 1e-6)
    z = np.linspace(low - margin, high + margin, _POINTS)
    densities, scores = zip(*(views_of(learned, each, z) for each in seen), strict=True)
    return Laws(z, np.array(densities), np.array(scores))


@kept_programs
def _programs(agent: Agent) -> tuple[Callable[..., Array], Callable[..., tuple[Array, Array]]]:
    """Compile the range of an observation's laws, and their densities and scores on a grid."""

    def ends(learned: Learned, observation: Shaped[AnyArray, "..."]) -> Array:
        laws = agent.laws(learned, jnp.asarray(observation))
        quantiles = laws.quantile(jnp.asarray([_TAIL, 1 - _TAIL]))
        return jnp.stack([jnp.min(quantiles), jnp.max(quantiles)])

    def views(
        learned: Learned, observation: Shaped[AnyArray, "..."], z: Array
    ) -> tuple[Array, Array]:
        laws = agent.laws(learned, jnp.asarray(observation))
        # Differences of a continuous CDF: a density for every law, also for those made of atoms.
        densities = jnp.gradient(laws.spread_cdf(z), z[1] - z[0], axis=-1)
        return jnp.asarray(densities), agent.scores(laws)

    return jax.jit(ends), jax.jit(views)


def _writer(suffix: str) -> AbstractMovieWriter:
    """Return what writes animations of a format."""
    if suffix != ".mp4":
        return PillowWriter(fps=_FRAMES_PER_SECOND)
    try:
        import imageio_ffmpeg
    except ImportError:
        raise missing("an animation as .mp4", "video") from None
    matplotlib.rcParams["animation.ffmpeg_path"] = imageio_ffmpeg.get_ffmpeg_exe()
    # What players read everywhere: even sides, and colours at half the resolution.
    even = ["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p"]
    return FFMpegWriter(fps=_FRAMES_PER_SECOND, codec="libx264", extra_args=even)


def _write(
    run: Run,
    writer: AbstractMovieWriter,
    scenes: list[Scene],
    laws: Laws,
    actions: list[int],
    totals: np.ndarray,
    out: Path,
) -> None:
    rendered = scenes[0].picture is not None
    figure, (axes,) = panels(1, 2, (9, 4)) if rendered else panels(1, 1, (5, 4))
    left, right = axes[0], axes[-1]
    highest = float(np.quantile(laws.densities.max(axis=(1, 2)), 0.95))
    with whole_picture(out) as partial, writer.saving(figure, str(partial), dpi=80):
        for index, scene in enumerate(scenes):
            if rendered:
                left.clear()
                left.imshow(scene.picture)
                left.set_axis_off()
            taken = actions[scene.number]
            _draw_laws(right, run, Laws(laws.z, laws.densities[index], laws.scores[index]), taken)
            right.set_ylim(0, max(highest, 1e-6) * 1.1)
            left.set_title(f"step {scene.number}, return so far {totals[scene.number]:g}")
            writer.grab_frame()


def _draw_laws(axis: Axes, run: Run, laws: Laws, taken: int) -> None:
    """Draw the density of every action; a dotted line where its score is."""
    axis.clear()
    for action, name in enumerate(map(drawn, run.spec.action_names)):
        colour = COLOURS[action % len(COLOURS)]
        label = f"{name} (taken)" if action == taken else name
        width = 2.2 if action == taken else 1.1
        axis.plot(laws.z, laws.densities[action], color=colour, linewidth=width, label=label)
        axis.axvline(laws.scores[action], color=colour, linestyle=":", linewidth=1)
    axis.set(xlabel=RETURN, ylabel="density", xlim=(laws.z[0], laws.z[-1]))
    axis.legend(loc="upper left", frameon=False, fontsize=8)
    axis.grid(alpha=0.25)
