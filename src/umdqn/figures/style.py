"""Colours of all figures, and how figures are written to files.

Figures are made without `matplotlib.pyplot`, so that drawing never changes a user's backend.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from umdqn.errors import UmdqnError
from umdqn.laws import showing

COLOURS, RETURN = showing.COLOURS, showing.RETURN

# Figures are small in inches, so that their text is large beside the lines: readable at half size.
_DOTS_PER_INCH = 170
# Inches that a letter of a legend takes, and a line with its gaps.
_LETTER, _LINE = 0.085, 0.65


def panels(
    rows: int, columns: int, size: tuple[float | int, float | int], **options: Any
) -> tuple[Figure, Any]:
    """Return a figure and its axes, an array [rows, columns]."""
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def legend(figure: Figure, axes: Iterable[Axes]) -> None:
    """Name the lines of all axes below the figure, each name once, in as many columns as fit."""
    found = [zip(*reversed(axis.get_legend_handles_labels()), strict=True) for axis in axes]
    legend_of(figure, dict(entry for axis in found for entry in axis))


def legend_of(figure: Figure, entries: Mapping[str, Any]) -> None:
    """Name lines below a figure, in as many columns as fit."""
    width = _LINE + _LETTER * max(map(len, entries), default=0)
    most = max(int(figure.get_figwidth() / width), 1)
    # Rows of about equal length.
    rows = max(-(-len(entries) // most), 1)
    columns = max(-(-len(entries) // rows), 1)
    handles, names = list(entries.values()), list(entries)
    figure.legend(handles, names, ncols=columns, loc="outside lower center", frameon=False)


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the file's suffix."""
    formats = figure.canvas.get_supported_filetypes()
    if path.suffix.lstrip(".") not in formats:
        known = ", ".join(sorted(formats))
        raise UmdqnError(f"--out {path}: unknown picture format {path.suffix!r}; known: {known}")
    with whole_picture(path) as partial:
        figure.savefig(partial, dpi=_DOTS_PER_INCH)


@contextlib.contextmanager
def whole_picture(path: Path) -> Iterator[Path]:
    """Yield a temporary path; the file moves to `path` once it is complete."""
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
