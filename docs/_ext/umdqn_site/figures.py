"""Figures that the build makes: one per name, for light and for dark pages."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import matplotlib as mpl
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from umdqn_site.links import ROOT

_MADE = Path("_build") / "figures"
_OF_RESULTS = ("curves", "accuracy")
"""Figures of committed results; the others are of laws, exact ones or those of a short training."""
_RESULTS = ("docs/*/results.*",)
_LAWS = ("src/umdqn/*.py", "src/umdqn/[!_]*/**/*.py")
# Packages that make no difference to what is learned.
_ASIDE = ("cli", "studies", "sweeps", "viewer")
_LIGHTER = {"#0072b2": "#56b4e9", "#d55e00": "#ff8f4a", "#009e73": "#34cfa2"}
_LOG = logging.getLogger(__name__)
_LINES = {"light": "#1f2328", "dark": "#d7dbe0"}
_GRIDS = {"light": "#c9ced6", "dark": "#4a5058"}


class Made(SphinxDirective):
    """A figure by name, and its caption; on a code host the caption is shown alone."""

    required_arguments = 1
    optional_arguments = 8
    has_content = True
    option_spec = {"alt": directives.unchanged}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        name, *arguments = self.arguments
        return [made(self, name, arguments, "\n".join(self.content), self.options.get("alt"))]


def made(
    directive: SphinxDirective, name: str, arguments: list[str], caption: str, alt: str | None
) -> nodes.figure:
    """Return the node of a figure, which is drawn unless it is there already."""
    figure = nodes.figure()
    stem = "-".join([name, *arguments])
    for theme in _LINES:
        path = _drawn(Path(directive.env.srcdir), stem, name, arguments, theme)
        figure += nodes.image(uri=path, alt=alt or caption, classes=[f"only-{theme}"])
    if caption:
        figure += nodes.caption("", "", *_inline(directive, caption))
    return figure


def _inline(directive: SphinxDirective, text: str) -> list[nodes.Node]:
    parsed = directive.parse_text_to_nodes(text)
    return [child for paragraph in parsed for child in paragraph.children]


def _drawn(source: Path, stem: str, name: str, arguments: list[str], theme: str) -> str:
    """Draw a figure unless one of the same inputs exists; return its path for Sphinx."""
    path = source / _MADE / f"{stem}-{theme}.svg"
    key, kept = _key(name in _OF_RESULTS), path.with_suffix(".key")
    if not (path.exists() and kept.exists() and kept.read_text() == key):
        from umdqn_site import drawings

        _LOG.info("drawing %s (%s)", stem, theme)
        path.parent.mkdir(parents=True, exist_ok=True)
        with mpl.rc_context(_style(theme)):
            drawings.FIGURES[name](*arguments).savefig(path, transparent=True)
        if theme == "dark":
            path.write_text(_lightened(path.read_text()))
        kept.write_text(key)
    return f"/{_MADE.as_posix()}/{path.name}"


def _lightened(svg: str) -> str:
    """Return a figure with lighter shades of the colours that are dim on a dark page."""
    for colour, lighter in _LIGHTER.items():
        svg = svg.replace(colour, lighter)
    return svg


def _style(theme: str) -> dict[str, object]:
    line = _LINES[theme]
    coloured = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    return {
        **dict.fromkeys(coloured, line),
        "grid.color": _GRIDS[theme],
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 11,
        "axes.titleweight": "bold",
        "font.size": 10,
        "svg.hashsalt": "umdqn",
        "legend.frameon": False,
        "lines.color": line,
        "patch.edgecolor": line,
    }


@cache
def _key(of_results: bool) -> str:
    """Return a digest of everything that figures are made of."""
    digest = hashlib.sha256(Path(__file__).with_name("drawings.py").read_bytes())
    for pattern in _RESULTS if of_results else _LAWS:
        for path in sorted(ROOT.glob(pattern)):
            if not set(_ASIDE) & set(path.relative_to(ROOT).parts):
                digest.update(path.read_bytes())
    return digest.hexdigest()


def setup(app: Sphinx) -> None:
    """Register the directive."""
    app.add_directive("made", Made)
