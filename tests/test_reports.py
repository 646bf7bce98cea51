"""Reports and figures: hostile names, few runs, and what pictures mark."""

import io
import json
import re
import warnings

import jax.numpy as jnp
import pytest
from matplotlib.colors import to_rgba

from umdqn.analysis.comparison import scores_of
from umdqn.figures import curves
from umdqn.figures.laws import laws_figure
from umdqn.laws.closed import GaussianMixture
from umdqn.runs.files import write_csv
from umdqn.studies import sections
from umdqn.studies.pages import Picture, Section, Table, write_report
from umdqn.studies.sections import write_comparison
from umdqn.sweeps.results import collect_all

NAMES = ("$x^$", "<script>alert(1)</script>", "=cmd|' /C calc'!A0", "a\x1b[2J\ud800", "[a](b) |c|")


def records_of(envs, agents, seeds=2, steps=(10, 20, 30)):
    return [
        {"env": env, "agent": agent, "step": step, "seed": seed, "return_mean": float(step + seed)}
        for env in envs
        for agent in agents
        for seed in range(seeds)
        for step in steps
    ]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A comparison of what has the worst names."""
    out = tmp_path_factory.mktemp("hostile") / "report"
    records = records_of(NAMES[:2], NAMES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_comparison(records, out, ["a remark on <b>$1</b>\x1b[2J"])
    return out, records


def test_names_are_text_in_reports(hostile):
    out, _ = hostile
    for name in ("report.md", "report.html"):
        text = (out / name).read_text()
        assert "<script" not in text
        assert "<b>" not in text
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
        assert "&lt;script&gt;" in text
    assert not re.search(r"(?<!\\)\]\((?!\w+\.png\))", (out / "report.md").read_text())
    for drawing in out.glob("*.svg"):
        assert "<script" not in drawing.read_text()


def test_names_survive_the_table_of_results(hostile):
    out, records = hostile
    sound = [each for each in records if "\ud800" not in each["agent"]]
    assert [
        each for each in collect_all([out / "results.csv"]) if "ud800" not in each["agent"]
    ] == sound
    cells = re.findall(r'(?:^|,)"?([=+@\t-])', (out / "results.csv").read_text())
    assert not cells


def test_no_heading_says_what_another_says(hostile):
    headings = re.findall(r"^#+ (.*)$", (hostile[0] / "report.md").read_text(), re.MULTILINE)
    assert headings == [
        "Comparison of algorithms",
        "Learning curves",
        "Final returns",
        "All environments together",
        "Who does better?",
    ]
    figure = curves.curves_figure(scores_of(records_of("a", "xy")), ["x", "y"])
    assert figure.get_suptitle() == ""


def polygons(figure):
    return [band for axis in figure.axes for band in axis.collections]


@pytest.mark.parametrize(("seeds", "bands", "lines"), [(1, 0, 2), (3, 0, 2 + 2 * 3), (5, 2, 2)])
def test_bands_are_drawn_from_five_runs_on(tmp_path, monkeypatch, seeds, bands, lines):
    records = records_of("ab", ("x", "y"), seeds)
    scores = scores_of(records)
    figure = curves.curves_figure(scores, scores.algorithms)
    assert len(polygons(figure)) == 2 * bands
    assert [len(axis.lines) for axis in figure.axes] == [lines, lines]
    assert figure.axes[0].get_title() == f"a, {seeds} run{'s' * (seeds > 1)}"
    for draw in (curves.efficiency_figure, curves.profiles_figure):
        assert bool(polygons(draw(scores))) is (seeds >= 5)
    bars = sum(len(axis.patches) for axis in curves.aggregates_figure(scores).axes)
    assert bars == (8 if seeds >= 5 else 0)
    # Captions are what counts here: writing pictures takes seconds.
    monkeypatch.setattr(
        sections, "picture", lambda out, name, figure, caption: Picture(out / name, caption)
    )
    found = sections.comparison_sections(records, tmp_path, ["x"], ["y"])
    pictures = [part for each in found for part in each.parts if isinstance(part, Picture)]
    said = [part.path.name for part in pictures if "which need 5 runs" in part.caption]
    assert said == ([] if seeds >= 5 else ["aggregates", "efficiency", "profiles", "improvement"])


def test_curves_end_where_the_last_evaluation_is():
    records = [
        {"env": "a", "agent": "x", "step": step, "seed": 0, "return_mean": float(step**2)}
        for step in range(1, 12)
    ]
    scores = scores_of(records)
    line = curves.curves_figure(scores, ["x"]).axes[0].lines[0]
    assert line.get_ydata()[[0, -1]].tolist() == [1.0, 121.0]


def test_tables_and_sections_of_reports(tmp_path):
    content = [Section("A | b", [Table(["h<1>"], [["x|y"]]), "# no heading", "-1 is a number"])]
    markdown, page, tables, _ = write_report(tmp_path, "T", content, [], {"a<b": "c\n<d>"})
    assert markdown.read_text() == (
        "# T\n\n## A \\| b\n\n| h&lt;1&gt; |\n| --- |\n| x\\|y |\n\n\\# no heading\n\n"
        "\\-1 is a number\n"
    )
    assert "<summary>a&lt;b</summary><pre>c\n&lt;d&gt;</pre>" in page.read_text()
    assert json.loads(tables.read_text()) == {"A | b": [[{"h<1>": "x|y"}]]}


def gaussians(*moments):
    means, stds = jnp.asarray(moments, jnp.float32).T[..., None]
    return GaussianMixture(jnp.ones_like(means), means, stds)


def test_laws_mark_mean_cvar_and_the_greedy_action():
    laws = gaussians((0.0, 1.0), (3.0, 1.0))
    figure = laws_figure({"row": [laws]}, None, ["left$", "right"], "title", {"row": 1})
    density = figure.axes[0]
    marks = {
        (line.get_marker(), to_rgba(line.get_color())): float(line.get_xdata()[0])
        for line in density.lines
        if line.get_marker() != "None"
    }
    colours = [to_rgba(colour) for colour in curves.COLOURS]
    # The mean of the worst tenth of a standard Gaussian is -phi(-1.2816) / 0.1 = -1.7550.
    for action, mean in enumerate((0.0, 3.0)):
        assert marks["^", colours[action]] == pytest.approx(mean, abs=1e-3)
        assert marks["o", colours[action]] == pytest.approx(mean - 1.755, abs=0.02)
    plain = [line for line in density.lines if line.get_marker() == "None"]
    widths = {to_rgba(line.get_color()): line.get_linewidth() for line in plain}
    assert widths[colours[1]] > widths[colours[0]]
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == [r"left\$", "right", "learned", "greedy action", "mean", "CVaR 10%"]
    figure.savefig(io.BytesIO())


def test_laws_are_shown_where_their_mass_is():
    laws = gaussians((0.0, 1.0), (1.0, 1.0), (0.5, 0.5), (2.0, 0.1))
    low, high = laws_figure({"row": [laws]}, None, list("abcd"), "t").axes[1].get_xlim()
    # Nearly all of the Gaussians' mass lies within three standard deviations.
    assert -3.5 < low < -1.8
    assert 2.8 < high < 4.5
    # A spike ten times as high as the others does not flatten them.
    assert laws_figure({"row": [laws]}, None, list("abcd"), "t").axes[0].get_ylim()[1] < 3


def test_results_are_written_once_with_their_formulas_disarmed(tmp_path):
    write_csv(tmp_path / "x.csv", [{"env": "=1", "step": -1}], ["env"])
    assert (tmp_path / "x.csv").read_bytes() == b"env,step\r\n'=1,-1\r\n"
