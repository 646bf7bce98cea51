"""The picture of the packages, drawn from the list that a page holds as text."""

from __future__ import annotations

import html

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

_ROW, _GAP, _BOX, _LETTER, _PAD, _WIDTH = 64, 22, 38, 8.1, 26, 760


class Layers(SphinxDirective):
    """One line per layer, packages separated by commas; later lines may import earlier ones.

    Packages in brackets stand beside the others.
    """

    has_content = True

    def run(self) -> list[nodes.Node]:
        rows = [[name.strip() for name in line.split(",")] for line in self.content if line.strip()]
        return [nodes.raw("", _drawing(rows), format="html")]


def _drawing(rows: list[list[str]]) -> str:
    height = len(rows) * _ROW
    shapes = [shape for number, row in enumerate(rows) for shape in _row(row, number * _ROW + 4)]
    arrows = [
        f'<path d="M{_WIDTH / 2} {number * _ROW + 4 + _BOX} v{_ROW - _BOX - 8}" '
        'marker-end="url(#layers-tip)"/>'
        for number in range(len(rows) - 1)
    ]
    described = "; ".join(", ".join(row) for row in rows)
    return (
        f'<div class="layers"><svg viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="Packages in the order of imports: {html.escape(described)}">'
        '<defs><marker id="layers-tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z"/></marker></defs>'
        f"{''.join(arrows)}{''.join(shapes)}</svg></div>"
    )


def _row(names: list[str], top: int) -> list[str]:
    widths = [_LETTER * len(name) + _PAD for name in names]
    x = (_WIDTH - sum(widths) - _GAP * (len(names) - 1)) / 2
    shapes = []
    for name, width in zip(names, widths, strict=True):
        beside = ' class="beside"' if name.startswith("(") else ""
        shapes.append(
            f'<rect{beside} x="{x:.0f}" y="{top}" width="{width:.0f}" height="{_BOX}" rx="6"/>'
            f'<text x="{x + width / 2:.0f}" y="{top + _BOX / 2 + 5:.0f}">'
            f"{html.escape(name.strip('()'))}</text>"
        )
        x += width + _GAP
    return shapes


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("layers", Layers)
