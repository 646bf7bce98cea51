"""Figures of laws: density, distribution function and quantile function of every action."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from umdqn.analysis.accuracy import FIGURE_STATE, truth
from umdqn.analysis.reports import is_grid_world
from umdqn.envs.grid_world import STATES, parse_state
from umdqn.errors import UmdqnError, check
from umdqn.figures.style import COLOURS, RETURN, legend_of, panels, save_figure
from umdqn.laws.law import Law
from umdqn.runs.run import Run
from umdqn.runs.values import read_number
from umdqn.text import drawn

Laws = Law | Sequence[Law]
"""The laws of all actions in a state."""

_POINTS = 801
_FRACTIONS = np.linspace(0.002, 0.998, 499)

# The share of worst returns that CVaR is the mean of.
_TAIL = 0.1
# The range of a picture leaves out this share of mass at either end, and has a margin.
_LEFT_OUT, _MARGIN, _NARROWEST = 0.004, 0.06, 1e-3
# Densities more than this many times as high as the usual peak are cut off.
_SPIKE = 4.0
_THIN, _THICK = 1.3, 2.8
# Where marks are, as a share of the height, and what they look like: marker, and whether filled.
_BELOW = 0.0
_MARKS = (("^", True), ("o", False))

_PANELS = (
    ("PDF", RETURN, "probability density"),
    ("CDF", RETURN, "cumulative probability"),
    ("QF", "quantile fraction", "return"),
)


def laws_figure(
    learned: Mapping[str, Sequence[Laws]],
    exact: Laws | None,
    actions: Sequence[str],
    title: str,
    greedy: Mapping[str, int] | None = None,
) -> Figure:
    """Draw PDF, CDF and QF of every action: learned plain, exact dotted, as in the paper's figure.

    `learned` maps the name of a row to the laws of all actions, once per seed, and `greedy` to the
    action that is chosen, whose lines are thick. Lines are the median over seeds and bands the
    range over them. Marks below the densities are the mean and the CVaR of the learned laws.
    """
    count = len(learned)
    every = [law for row in learned.values() for laws in row for law in laws]
    z = jnp.linspace(*_range(every if exact is None else list(exact)), _POINTS)
    figure, axes = panels(count, 3, (10.5, 1.1 + 2.6 * count), sharex="col")
    for (name, row), row_axes in zip(learned.items(), axes, strict=True):
        chosen = None if greedy is None else greedy[name]
        _draw_row(row_axes, row, exact, range(len(actions)), z, chosen)
        _draw_marks(row_axes[0], row, range(len(actions)), z)
        if count > 1:
            row_axes[0].set_ylabel(f"{drawn(name)}\n{_PANELS[0][2]}")
    for axis, (panel, _, _) in zip(axes[0], _PANELS, strict=True):
        axis.set_title(panel)
    for axis, (_, xlabel, _) in zip(axes[-1], _PANELS, strict=True):
        axis.set_xlabel(xlabel)
    _legend(figure, actions, exact is not None, greedy is not None)
    seeds = max(map(len, learned.values()))
    over = f"\nmedian and range of {seeds} seeds" if seeds > 1 else ""
    figure.suptitle(drawn(title, 120) + over, fontsize="medium")
    return figure


def _draw_row(
    axes: np.ndarray,
    learned: Sequence[Laws],
    exact: Laws | None,
    actions: Sequence[int],
    z: jax.Array,
    chosen: int | None,
) -> None:
    """Draw the three panels of one set of laws."""
    points = (np.asarray(z), np.asarray(z), _FRACTIONS)
    for action in actions:
        width = _THICK if action == chosen else _THIN
        colour = COLOURS[action % len(COLOURS)]
        curves = [_views(laws[action], z) for laws in learned]
        for panel, (axis, x) in enumerate(zip(axes, points, strict=True)):
            values = np.stack([curve[panel] for curve in curves])
            axis.plot(x, np.median(values, axis=0), color=colour, linewidth=width)
            if len(curves) > 1:
                axis.fill_between(x, *_extent(values), color=colour, alpha=0.2, linewidth=0)
            if exact is not None:
                axis.plot(x, _views(exact[action], z)[panel], color=colour, linestyle=":")
    for axis, (_, _, ylabel) in zip(axes, _PANELS, strict=True):
        axis.set_ylabel(ylabel)
        axis.grid(alpha=0.25)
    _limit_density(axes[0], learned[0] if exact is None else exact, z)
    # A law with a long tail would flatten all others.
    axes[2].set_ylim(float(z[0]), float(z[-1]))


def _draw_marks(axis: Axes, learned: Sequence[Laws], actions: Sequence[int], z: jax.Array) -> None:
    """Mark mean and CVaR of every action below its density: medians over seeds."""
    low, high = float(z[0]), float(z[-1])
    for action in actions:
        colour = COLOURS[action % len(COLOURS)]
        found = np.array([_compiled_marks(laws[action]) for laws in learned])
        for place, (marker, face) in zip(np.median(found, axis=0), _MARKS, strict=True):
            if low <= place <= high:
                fill = colour if face else "white"
                axis.plot(
                    [place],
                    [_BELOW],
                    marker,
                    transform=axis.get_xaxis_transform(),
                    color=colour,
                    markerfacecolor=fill,
                    markersize=7,
                    clip_on=False,
                    zorder=5,
                )


@jax.jit
def _compiled_marks(law: Law) -> tuple[jax.Array, jax.Array]:
    return law.mean, law.cvar(_TAIL)


def _views(law: Law, z: jax.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    views = _compiled_views(law, z, jnp.asarray(_FRACTIONS, jnp.float32))
    return np.asarray(views[0]), np.asarray(views[1]), np.asarray(views[2])


@jax.jit
def _compiled_views(law: Law, z: jax.Array, fractions: jax.Array) -> tuple[jax.Array, ...]:
    return law.pdf(z), law.cdf(z), law.quantile(fractions)


def _extent(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return values.min(axis=0), values.max(axis=0)


def _range(laws: Sequence[Law]) -> tuple[float, float]:
    """Return the interval that holds nearly all mass of the laws together, and a margin."""
    fractions = jnp.asarray(_FRACTIONS, jnp.float32)
    every = np.concatenate([np.asarray(_compiled_quantiles(law, fractions)) for law in laws])
    low, high = np.quantile(every, [_LEFT_OUT, 1 - _LEFT_OUT])
    # Laws that are all one point still need some width.
    margin = max(_MARGIN * (high - low), _NARROWEST * max(abs(low), abs(high)), 1e-30)
    return float(low - margin), float(high + margin)


@jax.jit
def _compiled_quantiles(law: Law, fractions: jax.Array) -> jax.Array:
    return law.quantile(fractions)


def _limit_density(axis: Axes, laws: Laws, z: jax.Array) -> None:
    """Limit the axis, so that a spike of one law does not flatten all others."""
    peaks = [float(np.max(_views(law, z)[0])) for law in laws]
    axis.set_ylim(0, 1.1 * min(max(peaks), _SPIKE * float(np.median(peaks))))


def _legend(figure: Figure, actions: Sequence[str], exact: bool, greedy: bool) -> None:
    entries = {
        drawn(name, 30): Line2D([], [], color=COLOURS[i % len(COLOURS)])
        for i, name in enumerate(actions)
    }
    entries["learned"] = Line2D([], [], color="grey", linewidth=_THIN)
    if greedy:
        entries["greedy action"] = Line2D([], [], color="grey", linewidth=_THICK)
    if exact:
        entries["exact"] = Line2D([], [], color="grey", linestyle=":")
    for name, (marker, filled) in zip(("mean", f"CVaR {_TAIL:.0%}"), _MARKS, strict=True):
        fill = "grey" if filled else "white"
        entries[name] = Line2D([], [], color="grey", marker=marker, linestyle="", mfc=fill)
    legend_of(figure, entries)


def figure_state_laws(runs: Mapping[str, Sequence[Run]], subtitle: str) -> Figure:
    """Draw the laws in the state of the paper's figure: a row per name, all seeds of its runs."""
    first = next(iter(runs.values()))[0]
    exact = truth(first.config.discount)[STATES.index(FIGURE_STATE)]
    rows = {
        name: [run.law(FIGURE_STATE, seed) for run in of_name for seed in run.seeds]
        for name, of_name in runs.items()
    }
    title = f"Laws of the return at {FIGURE_STATE}, {subtitle}"
    greedy = {name: greedy_action(of_name, rows[name]) for name, of_name in runs.items()}
    return laws_figure(rows, exact, first.spec.action_names, title, greedy)


def greedy_action(runs: Sequence[Run], laws: Sequence[Laws]) -> int:
    """Return the action that most seeds choose in a state, by its laws of each seed."""
    agent = runs[0].agent
    choices = [int(jnp.argmax(agent.scores(each))) for each in laws]  # type: ignore[arg-type]
    return int(np.bincount(choices).argmax())


def draw_laws(run: Run, state: str, out: Path) -> None:
    """Draw the laws of all actions in a state, with the exact laws where they are known."""
    exact: Laws | None = None
    seen: tuple[float, ...]
    if is_grid_world(run.config):
        seen = position = parse_state(state)
        exact = truth(run.config.discount)[STATES.index(position)]
    else:
        seen = _parse_observation(run, state)
    learned = [run.law(seen, seed) for seed in run.seeds]
    title = f"{run.config.label} on {run.config.env}, state {seen}, {run.age}"
    label = run.config.label
    greedy = {label: greedy_action([run], learned)} if run.agent.policy is None else None
    figure = laws_figure({label: learned}, exact, run.agent.spec.action_names, title, greedy)
    save_figure(figure, out)


def _parse_observation(run: Run, text: str) -> tuple[float, ...]:
    """Read an observation from text such as `0,0,0.1,0`."""
    shape = run.spec.observation.shape
    if len(shape) != 1:
        raise UmdqnError(
            f"state {text!r}: {run.config.env} observes pictures; umdqn watch draws their laws"
        )
    values = tuple(read_number("state", float, part) for part in text.split(","))
    allowed = f"{shape[0]} numbers with commas between them"
    check(len(values) == shape[0], "state", text, allowed)
    return values
