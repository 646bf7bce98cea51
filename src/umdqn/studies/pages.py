"""Reports: tables and pictures as Markdown, as a self-contained HTML file, and as data."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from umdqn.errors import UmdqnError
from umdqn.runs.files import (
    is_temporary,
    write_bytes,
    write_csv,
    write_json,
    write_sealed,
)
from umdqn.runs.schemas import Mark, read_checked
from umdqn.sweeps.results import axes_of
from umdqn.text import html, markdown, paragraph

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
  color: #1a1a1a; background: #fff; }
h1, h2 { line-height: 1.2; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { padding: 0.25rem 0.75rem; border-bottom: 1px solid #ddd; text-align: left;
  white-space: nowrap; }
img { max-width: 100%; height: auto; }
pre { overflow-x: auto; background: #f6f6f6; padding: 0.75rem; }
details { margin: 1rem 0; }
"""


class Table(NamedTuple):
    """A header and rows of text."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """Return the table as Markdown."""
        head, *rows = ([markdown(cell) for cell in line] for line in (self.header, *self.rows))
        lines = [head, ["---"] * len(head), *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def html(self) -> str:
        """Return the table as HTML."""
        head = "".join(f"<th>{html(cell)}</th>" for cell in self.header)
        body = "".join(
            "<tr>" + "".join(f"<td>{html(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Picture(NamedTuple):
    """A picture on disk, and its caption."""

    path: Path
    caption: str


class Section(NamedTuple):
    """A heading and its content."""

    title: str
    parts: Sequence[str | Table | Picture]


def claim(out: Path, kind: str) -> None:
    """Create a directory for a report of some kind; raise if it holds anything else."""
    mark = out / "report.json"
    try:
        out.mkdir(parents=True, exist_ok=True)
        vacant = all(map(is_temporary, out.iterdir()))
    except OSError as error:
        raise UmdqnError(f"--out {out}: cannot make it: {error.strerror}") from error
    if vacant:
        write_sealed(mark, {"kind": kind})
    elif not mark.is_file():
        raise UmdqnError(f"--out {out}: not empty, and not a report")
    elif (found := read_checked(mark, Mark)["kind"]) != kind:
        raise UmdqnError(f"--out {out} holds a {found}, not a {kind}: give another --out")


def write_report(
    out: Path,
    title: str,
    sections: Sequence[Section],
    records: Sequence[dict[str, Any]],
    details: Mapping[str, str],
) -> list[Path]:
    """Write a report in all formats, and its records; return the files written."""
    names = ("report.md", "report.html", "tables.json", "results.csv")
    markdown, page, tables, results = written = [out / name for name in names]
    _write_markdown(markdown, title, sections)
    _write_html(page, title, sections, details)
    _write_tables(tables, sections)
    write_csv(results, records, axes_of(records))
    return written


def _write_tables(path: Path, sections: Sequence[Section]) -> None:
    """Write all tables as JSON: by section, one object per row."""
    tables = {
        section.title: [
            [dict(zip(part.header, row, strict=True)) for row in part.rows]
            for part in section.parts
            if isinstance(part, Table)
        ]
        for section in sections
    }
    write_json(path, tables)


def _write_markdown(path: Path, title: str, sections: Sequence[Section]) -> None:
    """Write a report that refers to pictures in its directory."""

    def part(one: str | Table | Picture) -> str:
        if isinstance(one, Table):
            return one.markdown()
        if isinstance(one, Picture):
            return f"![{markdown(one.caption)}]({one.path.name})\n\n{paragraph(one.caption)}"
        return paragraph(one)

    texts = [f"# {markdown(title)}"]
    for section in sections:
        texts += [f"## {markdown(section.title)}", *map(part, section.parts)]
    write_bytes(path, ("\n\n".join(texts) + "\n").encode())


def _write_html(
    path: Path, title: str, sections: Sequence[Section], details: Mapping[str, str]
) -> None:
    """Write a report that needs no other file; `details` are texts that can be unfolded."""

    def part(one: str | Table | Picture) -> str:
        if isinstance(one, Table):
            return one.html()
        if isinstance(one, Picture):
            data = base64.b64encode(one.path.read_bytes()).decode()
            kind = "svg+xml" if one.path.suffix == ".svg" else "png"
            caption = html(one.caption)
            source = f"data:image/{kind};base64,{data}"
            return (
                f'<figure><img alt="{caption}" src="{source}">'
                f"<figcaption>{caption}</figcaption></figure>"
            )
        return f"<p>{html(one)}</p>"

    body = "".join(
        f"<h2>{html(section.title)}</h2>" + "".join(map(part, section.parts))
        for section in sections
    )
    body += "".join(
        f"<details><summary>{html(name)}</summary><pre>{_lines(text)}</pre></details>"
        for name, text in details.items()
    )
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html(title)}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{html(title)}</h1>{body}</body></html>"
    )
    write_bytes(path, page.encode())


def _lines(text: str) -> str:
    """Return text of several lines as HTML."""
    return "\n".join(map(html, text.split("\n")))
