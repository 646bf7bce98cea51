"""Write the table of docs/reliability.md from the counts that `make torture` made."""

from __future__ import annotations

import json
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- attacks -->\n", "<!-- end of attacks -->\n"


def table(counts: dict[str, list]) -> str:
    """Return the table of counts by test: an attack has the trials of all its tests."""
    sums: dict[str, list[int]] = {}
    for name, trials, failures in counts.values():
        total = sums.setdefault(name, [0, 0])
        total[0] += trials
        total[1] += failures
    rows = [f"| {name} | {trials:,} | {failures} |" for name, (trials, failures) in sums.items()]
    return "\n".join(["| attack | trials | failures |", "|---|--:|--:|", *sorted(rows)]) + "\n"


def page(text: str, counts: dict[str, list]) -> str:
    """Return the page with the table of these counts."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}{table(counts)}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    file = DOCS / "reliability.md"
    counts = json.loads((DOCS / "reliability.json").read_text())
    file.write_text(page(file.read_text(), counts))
