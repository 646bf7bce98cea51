"""What the documentation site needs besides Sphinx: a file per purpose."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

from umdqn_site import algorithms, figures, layers, links, mathml, reference


def setup(app: Sphinx) -> dict[str, Any]:
    """Register every part of the extension."""
    for module in (algorithms, figures, layers, links, mathml, reference):
        module.setup(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
