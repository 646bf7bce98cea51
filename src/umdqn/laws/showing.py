"""Laws as people see them: text, tables in notebooks, and lines in a plot."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import jax
import numpy as np
from jaxtyping import Array

from umdqn.errors import check

if TYPE_CHECKING:
    from umdqn.laws.law import Law

# Okabe and Ito's palette, readable by colour-blind people.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colours of actions and algorithms in all figures."""

RETURN = "return (sum of discounted rewards)"
"""Label of an axis of returns, in all figures."""

View = Literal["pdf", "cdf", "quantile"]
"""What `plot` draws: density, distribution function or quantile function."""

# Laws beyond these are counted, not listed.
_MOST_ROWS = 12
_MOST_LINES = 20
_POINTS = 301
# A picture leaves out this share of mass at either end, and this share of the width is its margin.
_TAIL, _MARGIN = 0.005, 0.05
_FRACTIONS = np.linspace(_TAIL, 1 - _TAIL, _POINTS, dtype=np.float32)
# Pixels of a picture, and of the numbers below it.
_WIDTH, _HEIGHT, _BELOW = 420, 120, 18
_TITLES = ("mean", "std", "5%", "median", "95%")
_LABELS: dict[str, tuple[str, str]] = {
    "pdf": (RETURN, "density"),
    "cdf": (RETURN, "probability of at most this return"),
    "quantile": ("share of the mass", RETURN),
}


def as_text(laws: Law) -> str:
    """Return one line for one law, a table for a few, and the shape of many."""
    name = type(laws).__name__
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(laws)):
        # Laws inside of compiled programs have no numbers to show.
        return f"{name}(...)"
    if not laws.shape:
        [row] = _numbers(laws)
        facts = zip(_TITLES, row, strict=True)
        return f"{name}({', '.join(f'{title} {number:.4g}' for title, number in facts)})"
    head = f"{name}({math.prod(laws.shape)} laws, shape {laws.shape})"
    if len(laws.shape) > 1 or len(laws) > _MOST_ROWS:
        return head
    lines = ["".join(f"{title:>11}" for title in ("law", *_TITLES))]
    for number, row in enumerate(_numbers(laws)):
        lines.append(f"{number:>11}" + "".join(f"{value:>11.4g}" for value in row))
    return "\n".join([head, *lines])


def as_html(laws: Law) -> str:
    """Return a table of a few laws with their densities above it; the text of many."""
    text = as_text(laws)
    if text.endswith("(...)") or len(laws.shape) > 1 or math.prod(laws.shape) > _MOST_ROWS:
        return f"<pre>{text}</pre>"
    rows = _numbers(laws)
    titles = "".join(f"<th>{title}</th>" for title in ("", *_TITLES))
    body = "".join(
        f"<tr><th style='color:{_colour(number)}'>{number if laws.shape else ''}</th>"
        + "".join(f"<td>{value:.4g}</td>" for value in row)
        + "</tr>"
        for number, row in enumerate(rows)
    )
    head = text.partition("\n")[0].partition("(mean")[0]
    return f"<div>{head}</div>{_picture(laws)}<table><tr>{titles}</tr>{body}</table>"


def plot(laws: Law, axes: Any = None, view: View = "pdf") -> Any:
    """Draw laws on Matplotlib's axes, those of `axes_for` unless given, and return the axes."""
    check(view in _LABELS, "view", view, f"one of {', '.join(_LABELS)}")
    count = math.prod(laws.shape)
    few = len(laws.shape) <= 1 and count <= _MOST_LINES
    check(few, "laws", laws.shape, f"one axis and at most {_MOST_LINES} laws in a plot")
    axes = axes_for(*_LABELS[view]) if axes is None else axes
    x = (
        np.linspace(_TAIL, 1 - _TAIL, _POINTS, dtype=np.float32)
        if view == "quantile"
        else _range(laws)
    )
    y = np.asarray(_seen(laws, x, view)).reshape(count, -1)
    means = np.asarray(laws.mean).reshape(count)
    for number in range(count):
        colour, label = _colour(number), f"action {number}" if laws.shape else None
        axes.plot(x, y[number], color=colour, label=label)
        if view != "quantile":
            axes.axvline(means[number], color=colour, linestyle=":", linewidth=1)
    axes.set_xlabel(_LABELS[view][0])
    axes.set_ylabel(_LABELS[view][1])
    if view != "quantile":
        axes.set_title("dotted: means", fontsize="small", loc="right")
    if laws.shape:
        axes.legend()
    return axes


def axes_for(x: str, y: str) -> Any:
    """Return the current axes if they are free or have these labels, else those of a new figure."""
    from matplotlib import pyplot

    axes = pyplot.gca()
    if axes.has_data() and (axes.get_xlabel(), axes.get_ylabel()) != (x, y):
        return pyplot.figure().add_subplot()
    return axes


def _numbers(laws: Law) -> np.ndarray:
    """Mean, standard deviation and three quantiles of each law."""
    return np.concatenate(
        [np.asarray(each).reshape(math.prod(laws.shape), -1) for each in _summary(laws)], axis=1
    )


# Compiled once for each kind and number of laws: one by one, operations take seconds at first.
@jax.jit
def _summary(laws: Law) -> tuple[Array, ...]:
    return laws.mean, laws.std, laws.quantile(np.array([0.05, 0.5, 0.95]))


@jax.jit
def _ends(laws: Law) -> Array:
    return laws.quantile(np.array([_TAIL, 1 - _TAIL]))


@partial(jax.jit, static_argnames="view")
def _seen(laws: Law, points: Array, view: View) -> Array:
    values: Array = getattr(laws, view)(points)
    return values


def _range(laws: Law) -> np.ndarray:
    """Returns that hold nearly all mass of all laws."""
    low, high = np.asarray(_ends(laws)).reshape(-1, 2).T
    margin = max(_MARGIN * (high.max() - low.min()), 1e-3 * abs(high.max()), 1e-6)
    return np.linspace(low.min() - margin, high.max() + margin, _POINTS, dtype=np.float32)


def _picture(laws: Law) -> str:
    """Densities as SVG."""
    x = _range(laws)
    y = np.asarray(_seen(laws, x, "pdf")).reshape(-1, _POINTS)
    top = y.max()
    if not np.isfinite(top) or top <= 0:
        return ""
    across = (x - x[0]) / (x[-1] - x[0]) * _WIDTH
    lines = "".join(
        f"<polyline fill='none' stroke='{_colour(number)}' stroke-width='1.5' points='"
        + " ".join(
            f"{a:.1f},{1 + _HEIGHT * (1 - b / top):.1f}" for a, b in zip(across, row, strict=True)
        )
        + "'/>"
        for number, row in enumerate(y)
    )
    about = f"densities of returns from {x[0]:.4g} to {x[-1]:.4g}"
    return (
        f"<svg role='img' aria-label='{about}' width='{_WIDTH}' height='{_HEIGHT + _BELOW}'>"
        f"<title>{about}</title>{lines}{_axis(x)}</svg>"
    )


def _axis(x: np.ndarray) -> str:
    """Returns at both ends and in the middle of a picture, below a line."""
    y = _HEIGHT + 1
    texts = "".join(
        f"<text x='{share * _WIDTH:g}' y='{y + 14}' text-anchor='{anchor}'>"
        f"{x[0] + share * (x[-1] - x[0]):.3g}</text>"
        for share, anchor in ((0, "start"), (0.5, "middle"), (1, "end"))
    )
    line = f"<line x2='{_WIDTH}' y1='{y}' y2='{y}' stroke='currentColor' stroke-width='0.5'/>"
    return f"{line}<g font-size='11' fill='currentColor'>{texts}</g>"


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]
