"""Text that comes from outside, made safe for where it is shown.

Names of environments, actions and agents, notes, manifests and errors of user code may hold
anything. Whatever writes such text passes it through the function of its destination: `visible` for
terminals and messages, `drawn` for figures, `cell` for CSV, `markdown` and `html` for reports.
"""

from __future__ import annotations

import html as _html
import re
import unicodedata
from typing import Any

# Longest text that a figure draws: a longer one would leave no room for the axes.
_MOST_DRAWN = 80
_BREAKS = re.compile(r"\s*[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*")
# What spreadsheets take for the beginning of a formula, also behind quotes that `cell` put there.
_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
# Ends of Markdown's links, images and their definitions; harmless once a backslash parts them.
_LINKS = re.compile(r"\](?=[(\[:])")
_MARKS = re.compile(r"[\\`*~|]|(?<![^\W_])_|_(?![^\W_])")
# What begins a heading, a list, a quotation or a rule at the start of a paragraph.
_OPENERS = re.compile(r"^(\d*)([#+=.)-])")


def is_plain(text: str) -> bool:
    """Return whether text is one line that shows as it is: no control or format characters."""
    return text.isprintable() or all(_shows(character) for character in text)


def _shows(character: str) -> bool:
    # Spaces other than the usual one count as not printable in Python.
    return character.isprintable() or unicodedata.category(character) == "Zs"


def visible(text: str) -> str:
    r"""Return text as one line: line breaks become spaces, other control characters `\x1b`."""
    if text.isprintable():
        return text
    return "".join(
        character if _shows(character) else character.encode("unicode_escape").decode()
        for character in _BREAKS.sub(" ", text)
    )


def shortened(text: str, most: int) -> str:
    """Return text of at most `most` characters, with an ellipsis where some are left out."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def drawn(text: str, most: int = _MOST_DRAWN) -> str:
    """Return text that Matplotlib draws as it is, without reading formulas between dollars."""
    return literal(shortened(visible(text), most))


def literal(text: str) -> str:
    """Return text in which Matplotlib reads no formulas between dollars."""
    return text.replace("$", r"\$")


def cell(value: Any) -> Any:
    """Return a value for a CSV file; text that spreadsheets would run as a formula gets a quote.

    `of_cell` restores the text. Numbers stay as they are, with their sign, also as text.
    """
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        return value
    return f"'{value}" if _FORMULA.match(value) else value


def of_cell(text: str) -> str:
    """Return the text that `cell` was given."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def markdown(text: str) -> str:
    """Return text for inside of a line of Markdown: nothing in it is markup, a link or HTML."""
    escaped = _MARKS.sub(r"\\\g<0>", _html.escape(visible(text), quote=False))
    return _LINKS.sub(r"]\\", escaped)


def paragraph(text: str) -> str:
    """Return text as a paragraph of Markdown: it begins no heading, list or quotation either."""
    return _OPENERS.sub(r"\1\\\2", markdown(text.strip()))


def html(text: str) -> str:
    """Return text for HTML, inside of elements and of quoted attributes."""
    return _html.escape(visible(text))
