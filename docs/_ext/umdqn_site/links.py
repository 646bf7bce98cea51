"""Links to files of the repository.

Pages link to `../src/umdqn/laws/law.py` relatively, as a code host wants it. In the site such a
link leads to a page with the file's text, or to the page that a Markdown file of the repository's
root has become.
"""

from __future__ import annotations

import html
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform

ROOT = Path(__file__).parents[3]
SHOWN = ("src", "tests", "examples", "benchmarks", "tools")
"""Directories whose Python files have pages."""
PAGES = {
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changelog",
    "SECURITY.md": "security",
    "README.md": "index",
    "LICENSE": "license",
}
"""Files of the repository's root that are pages of the site."""


def page_of(path: Path) -> str | None:
    """Return the name of the page that shows a file or directory of the repository."""
    try:
        relative = path.resolve().relative_to(ROOT)
    except ValueError:
        return None
    if str(relative) in PAGES:
        return PAGES[str(relative)]
    shown = bool(relative.parts) and relative.parts[0] in SHOWN and path.exists()
    return f"source/{relative.as_posix()}" if shown else None


class _Files(SphinxTransform):
    """Turns links to files outside of `docs` into links to their pages, before others look."""

    default_priority = 900

    def apply(self, **options: Any) -> None:
        kinds = (addnodes.download_reference, addnodes.pending_xref)
        found = [node for kind in kinds for node in self.document.findall(kind)]
        for node in found:
            page = self._page(node)
            if page is not None:
                link = addnodes.pending_xref(
                    refdomain="", reftype="repository", reftarget=page, refexplicit=True
                )
                link["refdoc"] = self.env.docname
                link += node.children
                node.replace_self(link)

    def _page(self, node: nodes.Element) -> str | None:
        """Return the page that a link of MyST leads to, if it is one of the repository's files."""
        if node.get("reftype") != "myst":
            return None
        target = str(node["reftarget"])
        if node.get("refdomain") == "doc":  # MyST takes other Markdown files for pages
            return page_of(Path(f"{target}.md")) if Path(f"{target}.md").is_absolute() else None
        _, path = self.env.relfn2path(target.partition("#")[0], self.env.docname)
        # Files of the root that a page includes link relatively to the root.
        return page_of(Path(path)) or page_of(ROOT / target)


def _resolve(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.Element
) -> nodes.Node | None:
    """Return the link to the page of a file or directory."""
    if node["reftype"] != "repository":
        return None
    uri = app.builder.get_relative_uri(node["refdoc"], node["reftarget"])
    return nodes.reference("", "", *node.children, internal=True, refuri=uri)


def _source_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield a page for each file, and one for each directory, that can be linked."""
    formatter = HtmlFormatter(linenos="inline", lineanchors="line", anchorlinenos=True)
    for top in SHOWN:
        for folder, names, files in os.walk(ROOT / top):
            names[:] = sorted(n for n in names if not n.startswith((".", "__")) and "egg" not in n)
            shown = sorted(name for name in files if name.endswith(".py"))
            relative = Path(folder).relative_to(ROOT).as_posix()
            yield _page(relative, _listing(app, relative, [*names, *shown]))
            for name in shown:
                text = Path(folder, name).read_text(encoding="utf-8")
                body = highlight(text, get_lexer_for_filename(name), formatter)
                yield _page(f"{relative}/{name}", body)


def _page(relative: str, body: str) -> tuple[str, dict[str, Any], str]:
    title = relative.removeprefix("src/")
    heading = f"<h1><code>{html.escape(title)}</code></h1>"
    return f"source/{relative}", {"title": title, "body": heading + body}, "page.html"


def _listing(app: Sphinx, relative: str, names: list[str]) -> str:
    here = f"source/{relative}"
    lines = [
        f'<li><a href="{app.builder.get_relative_uri(here, f"{here}/{name}")}">'
        f"<code>{html.escape(name)}</code></a></li>"
        for name in names
    ]
    return f"<ul>{''.join(lines)}</ul>"


def setup(app: Sphinx) -> None:
    """Register the transform and the pages."""
    app.add_transform(_Files)
    app.connect("missing-reference", _resolve)
    app.connect("html-collect-pages", _source_pages)
