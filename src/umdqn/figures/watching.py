"""An episode as people watch it: the picture, and beside it the laws of all actions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Array, Float, PyTree, Shaped
from matplotlib.animation import PillowWriter

from umdqn.agents import Agent
from umdqn.analysis.figures import COLOURS, whole_picture
from umdqn.runs import Run
from umdqn.types import UmdqnError, check_count

SUFFIXES = (".gif", ".webp")
_POINTS = 201
_MOST_FRAMES = 150
_FRAMES_PER_SECOND = 12


class Scene(NamedTuple):
    """One step of an episode."""

    picture: np.ndarray | None
    densities: np.ndarray
    """Of all actions, on a grid over the domain."""
    means: np.ndarray
    action: int
    total: float
    """Undiscounted return before the step; after it, where it was the last."""


def watch(run: Run, out: Path, seed: int | None = None, steps: int = 1_000) -> int:
    """Play an episode with a run's greedy policy and write it as an animation; its length."""
    check_count("steps", steps)
    if out.suffix not in SUFFIXES:
        raise UmdqnError(
            f"--out {out}: unknown animation format {out.suffix!r}; known: {', '.join(SUFFIXES)}"
        )
    scenes, length = _play(run, seed, steps)
    if scenes[0].picture is None:
        raise UmdqnError(f"environment {run.config.env!r} draws no pictures (rgb_array)")
    _write(run, scenes, out)
    return length


def _play(run: Run, seed: int | None, steps: int) -> tuple[list[Scene], int]:
    """Scenes of an episode, thinned out where it is long, and its length."""
    # Some environments draw with a library that looks for a screen and loudspeakers.
    for driver in ("SDL_VIDEODRIVER", "SDL_AUDIODRIVER"):
        os.environ.setdefault(driver, "dummy")
    policy = run.policy(seed)
    views = jax.jit(_views, static_argnums=0)
    env = run.config.environment().drawn()
    scenes: list[Scene] = []
    every, total = 1, 0.0
    try:
        observation = env.reset(policy.seed)
        for count in range(steps):
            densities, means = views(run.agent, policy.params, jnp.asarray(observation[0]))
            action = int(policy.predict(observation)[0][0]) - run.spec.first_action
            scene = Scene(env.render(), np.asarray(densities), np.asarray(means), action, total)
            step = env.step(np.array([action]))
            total += float(step.reward[0])
            ended = bool(step.terminated[0] or step.truncated[0])
            if ended:
                scene = scene._replace(total=total)
            if ended or count % every == 0:
                scenes.append(scene)
            if len(scenes) > _MOST_FRAMES:
                scenes, every = scenes[::2], 2 * every
            if ended:
                return scenes, count + 1
            observation = step.following
        return scenes, steps
    finally:
        env.close()


def _views(
    agent: Agent, params: PyTree, observation: Shaped[Array, "..."]
) -> tuple[Float[Array, "actions points"], Float[Array, "actions"]]:
    laws = agent.laws(params, observation)
    z = jnp.linspace(agent.domain.low, agent.domain.high, _POINTS)
    densities: list[Array] = []
    means: list[Array] = []
    for action in range(agent.spec.num_actions):
        law = laws[action]
        # Differences of a continuous CDF: a density for every law, those made of atoms included.
        densities.append(jnp.asarray(jnp.gradient(law.spread_cdf(z), z[1] - z[0])))
        means.append(law.mean)
    return jnp.stack(densities), jnp.stack(means)


def _write(run: Run, scenes: list[Scene], out: Path) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), constrained_layout=True)
    domain, names = run.config.domain, run.spec.action_names
    z = np.linspace(domain.low, domain.high, _POINTS)
    highest = float(np.quantile([scene.densities.max() for scene in scenes], 0.95))
    writer = PillowWriter(fps=_FRAMES_PER_SECOND)
    try:
        with whole_picture(out) as partial, writer.saving(figure, str(partial), dpi=80):
            for scene in scenes:
                left.clear()
                right.clear()
                left.imshow(scene.picture)
                left.set_axis_off()
                left.set_title(f"return so far {scene.total:g}")
                for action, name in enumerate(names):
                    colour, taken = COLOURS[action % len(COLOURS)], action == scene.action
                    label = f"{name} (taken)" if taken else name
                    width = 2.2 if taken else 1.1
                    right.plot(
                        z, scene.densities[action], color=colour, linewidth=width, label=label
                    )
                    right.axvline(scene.means[action], color=colour, linestyle=":", linewidth=1)
                right.set(xlabel="return (sum of discounted rewards)", ylabel="density")
                right.set(xlim=(domain.low, domain.high), ylim=(0, max(highest, 1e-6) * 1.1))
                right.legend(loc="upper left", frameon=False, fontsize=8)
                right.grid(alpha=0.25)
                writer.grab_frame()
    finally:
        plt.close(figure)
