"""Colours of all figures, and how figures are written to files.

Figures are made without `matplotlib.pyplot`, so that drawing never changes a user's backend.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from umdqn.errors import UmdqnError
from umdqn.laws import showing

COLOURS = showing.COLOURS

RETURN = "return (sum of discounted rewards)"
"""Label of an axis of returns."""


def panels(
    rows: int, columns: int, size: tuple[float | int, float | int], **options: Any
) -> tuple[Figure, Any]:
    """Return a figure and its axes, an array [rows, columns]."""
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the file's suffix."""
    formats = figure.canvas.get_supported_filetypes()
    if path.suffix.lstrip(".") not in formats:
        known = ", ".join(sorted(formats))
        raise UmdqnError(f"--out {path}: unknown picture format {path.suffix!r}; known: {known}")
    with whole_picture(path) as partial:
        figure.savefig(partial, dpi=130)


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
