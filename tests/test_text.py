"""Text from outside stays text: in terminals, figures, CSV, Markdown and HTML."""

import csv
import html as escapes
import io
import re
import warnings

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from umdqn import text
from umdqn.errors import InvalidField, UmdqnError
from umdqn.runs.configure import configure
from umdqn.runs.files import write_csv
from umdqn.sweeps.results import collect_all

HOSTILE = (
    "$x$",
    "$\\frac{",
    "50% of $5",
    "\ud800",
    "a\x1b[31mb\x1b]0;title\x07",
    "<script>alert(1)</script>",
    "=HYPERLINK(1)",
    "-1+1|cmd",
    "first\nsecond\r\n# third",
    "\u202egnp.exe",
    "[x](javascript:alert(1))",
    "`a` *b* _c_ | d",
    "x" * 10_000,
)
ANY = st.text(st.characters(exclude_categories=()), max_size=30)


@given(ANY)
def test_visible_text_is_one_line_of_characters_that_show(value):
    shown = text.visible(value)
    assert text.is_plain(shown)
    shown.encode()
    assert text.visible(shown) == shown
    if text.is_plain(value):
        assert shown == value


def test_control_characters_show_as_escapes():
    assert text.visible("a\x1b[31mb\ud800\u202e") == "a\\x1b[31mb\\ud800\\u202e"
    assert text.visible("first\r\n  second\u2028third") == "first second third"
    assert text.visible("名前 naïve\u3000x") == "名前 naïve\u3000x"


@given(ANY)
@example("-0")
@example("-0+1")
def test_a_cell_is_no_formula_and_reads_back(value):
    written = text.cell(value)
    assert not written.startswith(("=", "@", "\t", "\r", "\n"))
    if written.startswith(("+", "-")):
        float(written)
    assert text.of_cell(written) == value


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)))
def test_values_survive_a_table(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("table") / "table.csv"
    write_csv(path, [{"=name": value, "number": -1.5} for value in values])
    lines = list(csv.reader(io.StringIO(path.read_bytes().decode(), newline="")))
    assert lines[1:] == [[text.cell(value), "-1.5"] for value in values]
    assert [text.of_cell(line[0]) for line in lines[1:]] == values
    assert not values or text.of_cell(lines[0][0]) == "=name"


def test_results_with_formulas_are_read_back(tmp_path):
    names = ["=1+1", "'=1", "@a", "-2", "plain"]
    records = [
        {"env": name, "agent": "dqn", "step": 1, "seed": 0, "return_mean": -2.5} for name in names
    ]
    write_csv(tmp_path / "results.csv", records)
    assert collect_all([tmp_path / "results.csv"]) == records


@pytest.mark.parametrize("value", HOSTILE)
def test_figures_draw_any_name(value):
    figure = Figure()
    axis = figure.subplots()
    axis.set_title(text.drawn(value))
    axis.plot([0, 1], label=text.drawn(value))
    axis.legend()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.savefig(io.BytesIO(), format="png")
        figure.savefig(written := io.BytesIO(), format="svg")
    assert b"\x1b" not in written.getvalue()


@given(ANY)
def test_a_drawn_name_has_no_formula(value):
    from matplotlib import cbook

    shown = text.drawn(value)
    assert not cbook.is_math_text(shown)
    assert shown.replace(r"\$", "$").rstrip("…") in text.visible(value)


def parsed(line):
    """The characters of a line of Markdown without escapes, and whether any is markup."""
    markup = re.search(r"(?<!\\)[*`|~<>]|(?<!\\)\][(\[:]", re.sub(r"\\\\", "", line))
    return escapes.unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", line)), markup


@given(ANY | st.text("\\`*_[]()<>&|~#-+.1: ab", max_size=12))
def test_markdown_shows_text_and_nothing_else(value):
    for line in (text.markdown(value), text.paragraph(value)):
        assert parsed(line)[1] is None
    assert parsed(text.markdown(value))[0] == text.visible(value)
    assert not re.match(r"\s*([#>=+-]|\d+[.)])", text.paragraph(value))


def test_markdown_and_html_of_hostile_names():
    assert text.markdown("<script>a|b</script>") == "&lt;script&gt;a\\|b&lt;/script&gt;"
    assert text.markdown("[x](y) grid_world _a_") == r"[x]\(y) grid_world \_a\_"
    assert text.paragraph("1. one") == r"1\. one"
    assert text.html("<a href='x'>\x1b") == "&lt;a href=&#x27;x&#x27;&gt;\\x1b"


def test_messages_are_one_line_without_escape_codes():
    assert str(UmdqnError("a\n\x1b[2Jb")) == "a \\x1b[2Jb"
    assert len(str(InvalidField("field", "x" * 10_000, "short"))) < 300
    assert "too large to show" in str(InvalidField("steps", 10**5_000, "smaller"))


@pytest.mark.parametrize("value", ["a\x1b[2J", "\ud800", "two\nlines"])
def test_a_configuration_holds_no_control_characters(value):
    with pytest.raises(UmdqnError, match=r"policy = .* is not allowed: must be text, without con"):
        configure("grid-world", "dqn", overrides={"policy": value})
