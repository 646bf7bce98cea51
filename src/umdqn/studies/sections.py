"""Sections of reports that are made from the records of sweeps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from umdqn.analysis.comparison import Scores, final_table, scores_of, summary_table, told
from umdqn.studies.pages import Picture, Section, Table, claim, write_report

Record = dict[str, Any]
_NORMAL = "0 and 1 are the worst and the best final return of any run on an environment"


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
    figure = curves_figure(scores, scores.algorithms, title)
    return Section(name, [picture(out, name, figure, _curve_caption(scores))])


def comparison_section(
    records: Sequence[Record], out: Path, ours: Sequence[str], others: Sequence[str]
) -> Section:
    """Return the section of curves, final returns, ranks and statistics of several algorithms."""
    from umdqn.figures.curves import curves_figure

    scores = scores_of(records)
    parts: list[str | Table | Picture] = [
        picture(
            out,
            "comparison",
            curves_figure(scores, scores.algorithms, "Learning curves"),
            _curve_caption(scores),
        ),
        "At the end:",
        Table(*summary_table(records)),
        "The final return is the mean over the last fifth of the evaluations. The best evaluation "
        "is that of all seeds together, at its step. The fall is how far runs are below their best "
        "so far, on average over the second half of training, as a share of the range of all "
        "evaluations on an environment.",
        *_cut_short(scores),
        Table(*final_table(scores)),
    ]
    if len(scores.algorithms) > 1 and scores.common:
        parts += _together(scores, out, ours, others)
    return Section("comparison", parts)


def _cut_short(scores: Scores) -> list[str]:
    """Return a remark for each task on which some runs are longer than others."""
    return [
        f"On {task} all numbers are up to step {scores.steps[task][-1]:,}, the last at which all "
        f"runs were evaluated; some runs continue to {last:,}."
        for task, last in scores.longer.items()
    ]


def _together(
    scores: Scores, out: Path, ours: Sequence[str], others: Sequence[str]
) -> list[str | Table | Picture]:
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
        Table(["rank", *scores.repeated, "mean"], rank_rows),
        *_statistics_figures(scores, out),
        Table(["", *next(iter(aggregates.values()))], rows),
        *_who_is_better(scores, out, ours, others),
    ]


def _statistics_figures(scores: Scores, out: Path) -> list[Picture]:
    from umdqn.figures import curves

    where = ", ".join(scores.repeated)
    return [
        picture(
            out,
            "aggregates",
            curves.aggregates_figure(scores, f"On {where}"),
            f"Statistics of normalised final returns with 95% intervals; {_NORMAL}.",
        ),
        picture(
            out,
            "efficiency",
            curves.efficiency_figure(scores, "Sample efficiency"),
            "Interquartile mean of normalised returns along training, moving average over 3 "
            f"points, with 95% bands; {_NORMAL}.",
        ),
        picture(
            out,
            "profiles",
            curves.profiles_figure(scores, "Performance profiles"),
            f"Share of runs above a normalised final return; {_NORMAL}.",
        ),
    ]


def _who_is_better(
    scores: Scores, out: Path, ours: Sequence[str], others: Sequence[str]
) -> list[Table | Picture]:
    from umdqn.figures.curves import improvement_figure

    improvements = scores.improvements(ours, others)
    runs = min(len(scores.normalised(name)) for name in scores.algorithms)
    return [
        picture(
            out,
            "improvement",
            improvement_figure(improvements, "Who does better?"),
            "Probability of a better final return on a random environment, with 95% intervals.",
        ),
        Table(
            ["first", "second", "probability that the first is better [95% interval]"],
            [[*pair, told(found, runs)] for pair, found in improvements.items()],
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
    return f"Ranks and statistics over {where}{left_out}. Runs that count on each: {shown}."


def _curve_caption(scores: Scores) -> str:
    runs = {len(of) for tasks in scores.raw.values() for of in tasks.values()}
    if runs == {1}:
        return "Return of evaluation episodes of one seed, moving average over 5 evaluations."
    seeds = " or ".join(str(count) for count in sorted(runs))
    return (
        f"Mean return of evaluation episodes over {seeds} seeds, moving average over 5 evaluations "
        "with 95% bootstrap bands."
    )


def write_comparison(
    records: Sequence[Record], out: Path, remarks: Sequence[str] = ()
) -> list[Path]:
    """Write a report on the records of sweeps, after some remarks; return the files written."""
    names = scores_of(records).algorithms
    claim(out, "comparison")
    section = comparison_section(records, out, names, names)
    section = section._replace(parts=[*remarks, *section.parts])
    return write_report(out, "Comparison of algorithms", [section], records, {})
