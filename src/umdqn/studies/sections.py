"""Sections of reports that are made from the records of sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from umdqn.analysis.comparison import (
    Scores,
    final_table,
    scales_table,
    scores_of,
    summary_table,
    told,
)
from umdqn.analysis.statistics import FEW
from umdqn.studies.pages import Picture, Section, Table, claim, write_report

Record = dict[str, Any]
Content = str | Table | Picture


def picture(out: Path, name: str, figure: Any, caption: str) -> Picture:
    """Write a figure as SVG and as PNG."""
    from umdqn.figures.style import save_figure, whole_picture

    with whole_picture(out / f"{name}.svg") as partial:
        figure.savefig(partial)
    save_figure(figure, out / f"{name}.png")
    return Picture(out / f"{name}.png", caption)


def curves_section(records: Sequence[Record], out: Path, name: str, title: str) -> Section:
    """Return the section of learning curves on every environment."""
    from umdqn.figures.curves import curves_figure

    scores = scores_of(records)
    figure = curves_figure(scores, scores.algorithms)
    return Section(title, [picture(out, name, figure, _curve_caption(scores))])


def comparison_sections(
    records: Sequence[Record], out: Path, ours: Sequence[str], others: Sequence[str]
) -> list[Section]:
    """Return the sections of curves, final returns, ranks and statistics of several algorithms."""
    scores = scores_of(records)
    sections = [
        curves_section(records, out, "comparison", "Learning curves"),
        Section("Final returns", _finals(scores, records)),
    ]
    if len(scores.algorithms) > 1 and scores.common:
        sections.append(Section("All environments together", _together(scores, out)))
        sections.append(Section("Who does better?", _who_is_better(scores, out, ours, others)))
    return sections


def _finals(scores: Scores, records: Sequence[Record]) -> list[Content]:
    return [
        "The final return is the mean over the last fifth of the evaluations. The best evaluation "
        "is that of all seeds together, at its step. The fall is how far runs are below their best "
        "so far, on average over the second half of training, as a share of the range of all "
        f"evaluations on an environment. Intervals are shown from {FEW} runs on: of fewer, they "
        "would be too narrow.",
        *_cut_short(scores),
        Table(*final_table(scores)),
        "The last evaluation alone:",
        Table(*summary_table(records)),
    ]


def _cut_short(scores: Scores) -> list[str]:
    """Return a remark for each task on which some runs are longer than others."""
    return [
        f"On {task} all numbers are up to step {scores.steps[task][-1]:,}, the last at which all "
        f"runs were evaluated; some runs continue to {last:,}."
        for task, last in scores.longer.items()
    ]


def _together(scores: Scores, out: Path) -> list[Content]:
    """Return ranks and statistics over all environments that every algorithm was trained on."""
    aggregates = scores.aggregates()
    ranks = sorted(scores.ranks().items(), key=lambda item: sum(item[1].values()))
    rank_rows = [
        [name, *map(str, places.values()), f"{sum(places.values()) / len(places):.2f}"]
        for name, places in ranks
    ]
    rows = [
        [name, *(told(value, len(scores.normalised(name))) for value in values.values())]
        for name, values in aggregates.items()
    ]
    return [
        _runs_that_count(scores),
        "Returns are normalised so that 0 and 1 are:",
        Table(*scales_table(scores)),
        *_statistics_figures(scores, out),
        Table(["normalised final returns", *next(iter(aggregates.values()))], rows),
        "Ranks by mean final return:",
        Table(["rank", *scores.repeated, "mean"], rank_rows),
    ]


def _intervals(scores: Scores, word: str) -> str:
    """Return what a caption says of intervals or bands."""
    if scores.fewest >= FEW:
        return f", with 95% bootstrap {word}"
    return f"; no {word}, which need {FEW} runs of each algorithm on each environment"


def _statistics_figures(scores: Scores, out: Path) -> list[Picture]:
    from umdqn.figures import curves

    return [
        picture(
            out,
            "aggregates",
            curves.aggregates_figure(scores),
            f"Statistics of normalised final returns{_intervals(scores, 'intervals')}. IQM is the "
            "mean of the middle half of all runs; the optimality gap is the mean distance below 1, "
            "where less is better.",
        ),
        picture(
            out,
            "efficiency",
            curves.efficiency_figure(scores),
            "Sample efficiency: interquartile mean of normalised returns along training, averaged "
            f"over {curves.WINDOW_TOGETHER} neighbouring points{_intervals(scores, 'bands')}.",
        ),
        picture(
            out,
            "profiles",
            curves.profiles_figure(scores),
            "Performance profiles: share of runs above a normalised final return"
            f"{_intervals(scores, 'bands')}.",
        ),
    ]


def _who_is_better(
    scores: Scores, out: Path, ours: Sequence[str], others: Sequence[str]
) -> list[Content]:
    from umdqn.figures.curves import improvement_figure

    improvements = scores.improvements(ours, others)
    return [
        picture(
            out,
            "improvement",
            improvement_figure(improvements, scores.fewest),
            "Probability that a run of the first algorithm has a better final return than one of "
            f"the second, on a random environment{_intervals(scores, 'intervals')}.",
        ),
        Table(
            ["first", "second", "probability that the first is better"],
            [[*pair, told(found, scores.fewest)] for pair, found in improvements.items()],
        ),
    ]


def _runs_that_count(scores: Scores) -> str:
    """Return a remark on how many runs the statistics over environments use."""
    counts = {name: len(scores.normalised(name)) for name in scores.algorithms}
    shown = ", ".join(f"{name} {count}" for name, count in counts.items())
    if len(set(counts.values())) == 1 and not scores.uneven:
        shown = f"all {counts.popitem()[1]}"
    where = ", ".join(scores.repeated)
    single = [task for task in scores.common if task not in scores.repeated]
    left_out = f", without {', '.join(single)}, where not all have several" if single else ""
    return f"Over {where}{left_out}. Runs that count on each: {shown}."


def _curve_caption(scores: Scores) -> str:
    from umdqn.figures.curves import WINDOW

    counts = {len(of) for tasks in scores.raw.values() for of in tasks.values()}
    ways = []
    if max(counts) >= FEW:
        ways.append(f"bands are 95% bootstrap intervals of the mean over {FEW} runs or more")
    if any(1 < count < FEW for count in counts):
        ways.append(f"thin lines are single runs, where there are fewer than {FEW}")
    if 1 in counts:
        ways.append("a line without either is a single run, from which little follows")
    return (
        f"Mean return of evaluation episodes, averaged over {WINDOW} neighbouring evaluations and "
        f"fewer near the ends, so that no end is shifted; {'; '.join(ways)}."
    )


def write_comparison(
    records: Sequence[Record], out: Path, remarks: Sequence[str] = ()
) -> list[Path]:
    """Write a report on the records of sweeps, after some remarks; return the files written."""
    names = scores_of(records).algorithms
    claim(out, "comparison")
    first, *others = comparison_sections(records, out, names, names)
    first = first._replace(parts=[*remarks, *first.parts])
    return write_report(out, "Comparison of algorithms", [first, *others], records, {})
