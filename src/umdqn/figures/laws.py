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
from umdqn.analysis.reports import EXACT_ENV
from umdqn.envs.grid_world import STATES, parse_state
from umdqn.errors import UmdqnError, check
from umdqn.figures.style import COLOURS, RETURN, panels, save_figure
from umdqn.laws.law import Law
from umdqn.runs.run import Run
from umdqn.runs.values import read_number

Laws = Law | Sequence[Law]
"""The laws of all actions in a state."""

_POINTS = 801
_FRACTIONS = np.linspace(0.002, 0.998, 499)

_PANELS = (
    ("PDF", RETURN, "probability density"),
    ("CDF", RETURN, "cumulative probability"),
    ("QF", "quantile fraction", RETURN),
)


def laws_figure(
    learned: Mapping[str, Sequence[Laws]],
    exact: Laws | None,
    actions: Sequence[str],
    title: str,
) -> Figure:
    """Draw PDF, CDF and QF of every action: learned plain, exact dotted, as in the paper's figure.

    `learned` maps the name of a row to the laws of all actions, once per seed. Lines are the median
    over seeds and bands the range over them.
    """
    count = len(learned)
    every = [law for row in learned.values() for laws in row for law in laws]
    z = jnp.linspace(*_range(every if exact is None else list(exact)), _POINTS)
    size = (13, 1.2 + 3.2 * count)
    figure, axes = panels(count, 3, size, sharex="col")
    for (name, row), row_axes in zip(learned.items(), axes, strict=True):
        _draw_row(row_axes, row, exact, actions, z)
        if count > 1:
            row_axes[0].set_ylabel(f"{name}\n{_PANELS[0][2]}")
    for axis, (panel, _, _) in zip(axes[0], _PANELS, strict=True):
        axis.set_title(panel)
    for axis, (_, xlabel, _) in zip(axes[-1], _PANELS, strict=True):
        axis.set_xlabel(xlabel)
    _legend(figure, actions, exact is not None, max(map(len, learned.values())))
    figure.suptitle(title)
    return figure


def _draw_row(
    axes: np.ndarray,
    learned: Sequence[Laws],
    exact: Laws | None,
    actions: Sequence[str],
    z: jax.Array,
) -> None:
    """Draw the three panels of one set of laws."""
    points = (np.asarray(z), np.asarray(z), _FRACTIONS)
    for action, name in enumerate(actions):
        colour = COLOURS[action % len(COLOURS)]
        curves = [_views(laws[action], z) for laws in learned]
        for panel, (axis, x) in enumerate(zip(axes, points, strict=True)):
            values = np.stack([curve[panel] for curve in curves])
            axis.plot(x, np.median(values, axis=0), color=colour, linewidth=1.6, label=name)
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


def _views(law: Law, z: jax.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    views = _compiled_views(law, z, jnp.asarray(_FRACTIONS, jnp.float32))
    return np.asarray(views[0]), np.asarray(views[1]), np.asarray(views[2])


@jax.jit
def _compiled_views(law: Law, z: jax.Array, fractions: jax.Array) -> tuple[jax.Array, ...]:
    return law.pdf(z), law.cdf(z), law.quantile(fractions)


def _extent(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return values.min(axis=0), values.max(axis=0)


def _range(laws: Sequence[Law]) -> tuple[float, float]:
    """Return an interval with most of the mass of the laws, and a margin."""
    ends = np.array([np.asarray(law.quantile(jnp.asarray([0.003, 0.997]))) for law in laws])
    low, high = np.median(ends[:, 0]), np.median(ends[:, 1])
    low, high = min(low, np.percentile(ends[:, 0], 10)), max(high, np.percentile(ends[:, 1], 90))
    margin = 0.12 * (high - low)
    return float(low - margin), float(high + margin)


def _limit_density(axis: Axes, laws: Laws, z: jax.Array) -> None:
    """Limit the axis, so that a spike of one law does not flatten all others."""
    peaks = [float(np.max(_views(law, z)[0])) for law in laws]
    axis.set_ylim(0, 1.6 * max(peaks))


def _legend(figure: Figure, actions: Sequence[str], exact: bool, seeds: int) -> None:
    handles = [
        Line2D([], [], color=COLOURS[i % len(COLOURS)], label=name)
        for i, name in enumerate(actions)
    ]
    learned = "learned" if seeds == 1 else f"learned (median; band: range of {seeds} seeds)"
    handles.append(Line2D([], [], color="grey", label=learned))
    if exact:
        handles.append(Line2D([], [], color="grey", linestyle=":", label="exact"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)


def figure_state_laws(runs: Mapping[str, Sequence[Run]], subtitle: str) -> Figure:
    """Draw the laws in the state of the paper's figure: a row per name, all seeds of its runs."""
    first = next(iter(runs.values()))[0]
    exact = truth(first.config.discount)[STATES.index(FIGURE_STATE)]
    rows = {
        name: [run.law(FIGURE_STATE, seed) for run in of_name for seed in run.seeds]
        for name, of_name in runs.items()
    }
    title = f"Laws of the return at {FIGURE_STATE}, {subtitle}"
    return laws_figure(rows, exact, first.spec.action_names, title)


def draw_laws(run: Run, state: str, out: Path) -> None:
    """Draw the laws of all actions in a state, with the exact laws where they are known."""
    exact: Laws | None = None
    seen: tuple[float, ...]
    if run.config.env == EXACT_ENV:
        seen = position = parse_state(state)
        exact = truth(run.config.discount)[STATES.index(position)]
    else:
        seen = _parse_observation(run, state)
    learned = [run.law(seen, seed) for seed in run.seeds]
    title = f"{run.config.label} on {run.config.env}, state {seen}, {run.age}"
    rows = {run.config.label: learned}
    save_figure(laws_figure(rows, exact, run.agent.spec.action_names, title), out)


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
