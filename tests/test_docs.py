"""The documentation: code blocks run, and everything that users can name is described."""

import dataclasses
import importlib
import importlib.util
import json
import re
import sys

import pytest

import documentation
import umdqn
from documentation import MARKS, ROOT, blocks, check, members_of_classes, pages, run_page
from umdqn.agents.algorithms import ALGORITHMS
from umdqn.parts.describe import describe
from umdqn.runs.config import Config, Evaluation
from umdqn.runs.kinds import KINDS

sys.path.insert(0, str(ROOT / "docs" / "_ext"))

QUICK = (
    "README.md",
    "docs/concepts/law.md",
)
"""Pages that `make test` runs: they share one training, compiled once. `make test-slow` runs the
others."""
PACKAGES = {"sb3": "stable_baselines3", "minatar": "minatar"}
MISSING = {mark for mark, name in PACKAGES.items() if importlib.util.find_spec(name) is None}


def name_of(path):
    return str(path.relative_to(ROOT))


PAGES = pages()
PROSE = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts),
]
THERE = [path for path in PAGES if name_of(path) in QUICK]
LONGER = [path for path in PAGES if name_of(path) not in QUICK]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty working directory; modules and names that pages add are gone afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("MPLBACKEND", "agg")
    before = set(sys.modules)
    for table in KINDS.values():
        for attribute in ("_classes", "_adopted"):
            monkeypatch.setattr(table, attribute, dict(getattr(table, attribute)))
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def test_quick_pages_exist():
    assert {name_of(path) for path in THERE} == set(QUICK)


@pytest.mark.parametrize("path", THERE, ids=name_of)
def test_quick_pages_run(path, place):
    run_page(path, {"checked", "slow"} | MISSING)


@pytest.mark.slow
@pytest.mark.parametrize("path", LONGER, ids=name_of)
def test_pages_run(path, place):
    run_page(path, {"checked"} | MISSING)


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_blocks_can_be_read(path, place):
    """Also those that are not run: their Python parses, their commands and options exist."""
    for block in blocks(path):
        assert block.marks <= MARKS
        block.write()
        check(block)


def test_a_wrong_block_is_noticed():
    wrong = documentation.Block("bash", frozenset(), "umdqn train grid-world --replay.capasity 1")
    with pytest.raises(AssertionError, match="capasity"):
        check(wrong)
    with pytest.raises(AssertionError, match="exit code 1"):
        documentation._run(["umdqn", "train", "grid-world", "no-such-agent"])


def test_every_public_name_is_documented():
    text = (ROOT / "docs" / "reference" / "python.md").read_text()
    documented = set(re.findall(r"^\.\. \w+:: umdqn\.(\w+)", text, re.MULTILINE))
    assert set(umdqn.__all__) <= documented


def test_every_public_name_has_a_docstring():
    for name in umdqn.__all__:
        value = getattr(umdqn, name)
        if callable(value):
            assert value.__doc__, name


def test_every_field_is_described():
    """What the reference shows is read from source; here the classes say what there has to be."""
    from umdqn_site.reference import configuration

    text = configuration()
    described = dict(re.findall(r"^`([\w.]+)` .*\n: (.*)$", text, re.MULTILINE))
    expected = {field.name for field in dataclasses.fields(Config)} - {"evaluation"}
    expected |= {f"evaluation.{field.name}" for field in dataclasses.fields(Evaluation)}
    for kind, table in KINDS.items():
        for name in table:
            assert describe(table.source(name)).summary in text
            fields = dataclasses.fields(table[name])
            expected |= {f"{kind}.{field.name}" for field in fields if field.init}
    assert expected <= set(described)
    assert not [name for name in expected if len(described[name]) < 10]


def test_every_command_is_described():
    """Commands and their options, by the parser that reads them."""
    from umdqn_site.reference import command, parsers

    assert {"train", "law-of", "compare", "envs"} <= set(parsers())
    for name in parsers():
        text = command(name)
        for action in parsers(name)[name]._actions:
            if action.option_strings and not action.dest.startswith(("field:", "help")):
                assert f"`{action.option_strings[0]}`" in text, (name, action.dest)


def test_every_algorithm_has_a_page():
    for name in ALGORITHMS:
        text = (ROOT / "docs" / "algorithms" / f"{name}.md").read_text()
        for section in ("Equation", "Settings", "Results", "Deviations"):
            assert f"## {section}" in text, name


def test_settings_are_those_that_runs_have():
    """The table of UMDQN-C against values that presets.py states."""
    from umdqn_site.algorithms import settings

    rows = {
        re.findall(r"`([\w.]+)`", line)[0]: [cell.strip() for cell in line.split("|")[2:-1]]
        for line in settings("umdqn-c").splitlines()[2:]
    }
    assert rows["metric.points"] == ["`200`", "`200`", "`100`", "`200`", "`200`"]
    assert rows["support"] == ["`learned`", "`learned`", "`learned`", "`fixed`", "`fixed`"]
    assert rows["representation.point_scale"][:2] == ["`4.0`", "`60.0`"]


def test_the_layers_are_those_of_the_imports():
    from test_architecture import FLOW

    text = (ROOT / "docs" / "architecture.md").read_text()
    [drawn] = re.findall(r"```{layers}\n(.*?)```", text, re.DOTALL)
    named = [name.strip() for name in re.split(r"[,\n]", drawn) if name.strip()]
    assert [name for name in named if not name.startswith("(")] == list(FLOW)


def test_links_to_files_lead_somewhere():
    """Relative links of pages, README and CONTRIBUTING, as a code host resolves them."""
    for path in PROSE:
        text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(), flags=re.DOTALL)
        targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
        for target in targets + re.findall(r'(?:src|srcset)="([^"]+)"', text):
            if "://" not in target:
                assert (path.parent / target).exists(), f"{path.relative_to(ROOT)}: {target}"


def test_code_that_pages_name_exists():
    """`Class.member` anywhere, and the names in the label of a link to a module."""
    members = members_of_classes()
    named = linked = 0
    for path in PROSE:
        text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
        for cls, member in re.findall(r"`([A-Z][a-z]\w+)\.(\w+)", text):
            assert member in members.get(cls, ()), f"{path.name}: {cls}.{member}"
            named += 1
        for label, target in re.findall(r"\[([^\]]*)\]\(([^)#\s]+/\w+[a-z]\.py)\)", text):
            source = (path.parent / target).read_text()
            for name in re.findall(r"`(?:\w+\.)*(\w+)`", label):
                defined = rf"^ *((def|class) {name}\b|{name}\b.* = )"
                assert re.search(defined, source, re.MULTILINE), f"{path.name}: {name} in {target}"
                linked += 1
    # One update, step by step, alone names more than these.
    assert named > 20
    assert linked > 30


@pytest.mark.slow
def test_the_site_builds_without_warnings(tmp_path):
    import subprocess

    build = [sys.executable, "-m", "sphinx", "-W", "-q", "docs", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    page = (tmp_path / "reference" / "configuration.html").read_text()
    assert "metric.kappa" in page
    assert (tmp_path / "source" / "src" / "umdqn" / "laws" / "law.py.html").exists()
    for path in tmp_path.rglob("*.html"):
        loaded = re.findall(r'(?:src|href)="(https?://[^"]+\.(?:js|css|woff2?))', path.read_text())
        assert not loaded, f"{path.name} needs the network: {loaded}"


def test_the_table_of_attacks_is_what_was_counted():
    """Each row comes from tests that there are, and none of them failed."""
    spec = importlib.util.spec_from_file_location("reliability", ROOT / "tools" / "reliability.py")
    reliability = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reliability)
    text = (ROOT / "docs" / "reliability.md").read_text()
    counts = json.loads((ROOT / "docs" / "reliability.json").read_text())
    assert counts
    assert reliability.page(text, counts) == text
    for test, (name, trials, failures) in counts.items():
        file, _, rest = test.partition("::")
        assert f"def {rest.partition('[')[0]}(" in (ROOT / file).read_text(), test
        assert name in text.partition(reliability.END)[2], name
        assert (trials > 0, failures) == (True, 0), test
