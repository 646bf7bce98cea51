"""Figures."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from umdqn.laws import Law
from umdqn.types import UmdqnError

# Okabe and Ito's palette, readable by colour-blind people.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

_POINTS = 801
_FRACTIONS = np.linspace(0.002, 0.998, 499)

_RETURN = "return (sum of discounted rewards)"
_PANELS = (
    ("PDF", _RETURN, "probability density"),
    ("CDF", _RETURN, "cumulative probability"),
    ("QF", "quantile fraction", _RETURN),
)


def laws_figure(
    learned: Mapping[str, Sequence[Sequence[Law]]],
    exact: Sequence[Law] | None,
    actions: Sequence[str],
    title: str,
) -> Figure:
    """PDF, CDF and QF of every action: learned plain, exact dotted, as in the paper's figure.

    `learned` holds, by the name of a row, the laws of all actions, once a seed. Lines are the
    median over seeds and bands the range over them.
    """
    count = len(learned)
    every = [law for row in learned.values() for laws in row for law in laws]
    z = jnp.linspace(*_range(list(exact or every)), _POINTS)
    size = (13, 1.2 + 3.2 * count)
    figure, axes = plt.subplots(
        count, 3, figsize=size, constrained_layout=True, sharex="col", squeeze=False
    )
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
    axes: Sequence[Axes],
    learned: Sequence[Sequence[Law]],
    exact: Sequence[Law] | None,
    actions: Sequence[str],
    z: jax.Array,
) -> None:
    """The three panels of one set of laws."""
    points = (np.asarray(z), np.asarray(z), _FRACTIONS)
    for action, name in enumerate(actions):
        colour = COLOURS[action % len(COLOURS)]
        curves = [_views(laws[action], z) for laws in learned]
        for panel, (axis, x) in enumerate(zip(axes, points, strict=True)):
            values = np.stack([curve[panel] for curve in curves])
            axis.plot(x, np.median(values, axis=0), color=colour, linewidth=1.6, label=name)
            if len(curves) > 1:
                axis.fill_between(x, *_extent(values), color=colour, alpha=0.2, linewidth=0)
            if exact:
                axis.plot(x, _views(exact[action], z)[panel], color=colour, linestyle=":")
    for axis, (_, _, ylabel) in zip(axes, _PANELS, strict=True):
        axis.set_ylabel(ylabel)
        axis.grid(alpha=0.25)
    _limit_density(axes[0], exact or learned[0], z)
    # A law whose tail runs off would flatten all others.
    axes[2].set_ylim(float(z[0]), float(z[-1]))


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of its suffix."""
    formats = figure.canvas.get_supported_filetypes()
    if path.suffix.lstrip(".") not in formats:
        known = ", ".join(sorted(formats))
        raise UmdqnError(f"--out {path}: unknown picture format {path.suffix!r}; known: {known}")
    try:
        with whole_picture(path) as partial:
            figure.savefig(partial, dpi=130)
    finally:
        plt.close(figure)


@contextlib.contextmanager
def whole_picture(path: Path) -> Iterator[Path]:
    """Where to write a picture that appears under its name only when it is whole."""
    partial = path.with_name(f".{path.stem}.partial{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        partial.replace(path)
    except OSError as error:
        raise UmdqnError(f"--out {path}: cannot write: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def _views(law: Law, z: jax.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    views = _compiled_views(law, z, jnp.asarray(_FRACTIONS, jnp.float32))
    return np.asarray(views[0]), np.asarray(views[1]), np.asarray(views[2])


@jax.jit
def _compiled_views(law: Law, z: jax.Array, fractions: jax.Array) -> tuple[jax.Array, ...]:
    return law.pdf(z), law.cdf(z), law.quantile(fractions)


def _extent(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return values.min(axis=0), values.max(axis=0)


def _range(laws: Sequence[Law]) -> tuple[float, float]:
    """Where the laws have their mass, with a margin."""
    ends = np.array([np.asarray(law.quantile(jnp.asarray([0.003, 0.997]))) for law in laws])
    low, high = np.median(ends[:, 0]), np.median(ends[:, 1])
    low, high = min(low, np.percentile(ends[:, 0], 10)), max(high, np.percentile(ends[:, 1], 90))
    margin = 0.12 * (high - low)
    return float(low - margin), float(high + margin)


def _limit_density(axis: Axes, laws: Sequence[Law], z: jax.Array) -> None:
    """Keep a spike of one law from flattening all others."""
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
