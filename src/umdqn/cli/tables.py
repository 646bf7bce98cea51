"""Tables for the terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from umdqn.calibration.verdicts import compared
from umdqn.text import visible


def print_report(report: dict[str, Any], as_json: bool) -> None:
    """Print one line for all seeds together, then one per seed."""
    if as_json:
        print(json.dumps(report))
        return
    seeds = report["seeds"]
    keys = list(next(iter(seeds.values())))
    rows = [("all", *(_number(report[key]) for key in keys))]
    rows += [(seed, *(_number(values[key]) for key in keys)) for seed, values in seeds.items()]
    print_table(("seed", *keys), rows)


def _number(value: float | int | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.4f}"


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table with columns as wide as their widest cell."""
    lines = [[visible(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for row in lines:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )


def print_calibration(report: dict[str, Any]) -> None:
    """Print the scores of laws with two standard errors: all seeds, then each; what they are of."""
    parts = [("all", report), *report["seeds"].items()]
    rows = [
        (
            name,
            *(
                f"{part['coverage'][level]:.3f} +- {2 * part['coverage_error'][level]:.3f}"
                for level in part["coverage"]
            ),
            f"{part['bias']:.3g} +- {2 * part['bias_error']:.1g}",
            f"{part['crps']:.3g}",
            "-" if part["crps_skill"] is None else f"{part['crps_skill']:.3f}",
            f"{part['ks']:.3f}",
        )
        for name, part in parts
    ]
    within = (f"within {float(level):.0%}" for level in report["coverage"])
    print_table(("seed", *within, "bias", "CRPS", "skill", "KS"), rows)
    print(compared(report))
