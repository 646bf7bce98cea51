"""Formulas as MathML, which browsers draw by themselves: no script, no network."""

from __future__ import annotations

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

_LOG = logging.getLogger(__name__)


def _inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(f'<span class="math">{_formula(node, as_block=False)}</span>')
    raise nodes.SkipNode


def _block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math">{_formula(node, as_block=True)}</div>')
    raise nodes.SkipNode


def _formula(node: nodes.Element, as_block: bool) -> str:
    try:
        formula = str(latex2mathml.tex2mathml(node.astext(), as_block=as_block))
    except MathError as error:
        _LOG.warning("formula %r: %s", node.astext(), error, location=node)
        return ""
    return formula.replace("<mo>'</mo>", "<mo>\N{PRIME}</mo>")


def setup(app: Sphinx) -> None:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
