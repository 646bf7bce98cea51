"""The study of truth: trains, measures, reports; and resumes without doing anything twice."""

import json

import pytest

from umdqn.cli.main import main
from umdqn.studies.truth.study import AGENTS, SECTIONS, TruthStudy

CHOSEN = ["--only", "evaluation", "--env", "random-walk", "--agent", "umdqn-c"]
CHOSEN += ["--steps", "1500", "--seeds", "2"]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    out = tmp_path_factory.mktemp("study") / "truth"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("umdqn.studies.truth.study._EPISODES", 50)
        assert main(["study", "truth", "--out", str(out), *CHOSEN]) == 0
    return out


def test_the_report_has_distances_floors_and_coverage(study):
    sections = json.loads((study / "results.json").read_text())["sections"]
    assert set(sections) == {"evaluation"}
    seeds = sections["evaluation"]["random-walk"]["umdqn-c"]["seeds"]
    assert set(seeds) == {"0", "1"}
    for seed in seeds.values():
        assert seed["normalised_w1"] > 0
        assert seed["floor"] > 0
        assert 0 <= seed["coverage_90"] <= 1
    report = (study / "report.md").read_text()
    assert "random-walk" in report
    assert "floor" in report
    assert "-" not in [cell.strip() for cell in report.splitlines()[-1].split("|")]
    assert (study / "evaluation.png").stat().st_size > 10_000


def test_nothing_is_done_twice(study, capsys):
    before = {path: path.stat().st_mtime_ns for path in study.glob("sweep/runs/*/manifest.json")}
    assert len(before) == 1
    assert main(["study", "truth", "--out", str(study), *CHOSEN]) == 0
    assert "measuring" not in capsys.readouterr().err
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_all_cases_are_planned(tmp_path):
    jobs = TruthStudy(tmp_path / "all").jobs
    assert len(jobs) == len(AGENTS) * sum(map(len, SECTIONS.values()))
    discounts = {job.config.discount for job in jobs if job.point["env"] != "grid-world"}
    assert discounts == {0.99}
    followed = {job.point["env"] for job in jobs if job.config.policy}
    assert followed == set(SECTIONS["evaluation"])
    assert {job.config.domain for job in jobs} == {None}


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["truth", "--env", "random-wlak"], "random-walk"),
        (["truth", "--agent", "dqn"], "umdqn-c"),
        (["truth", "--only", "controll"], "control"),
        (["laws", "--env", "grid-world"], "study laws takes none"),
    ],
)
def test_wrong_names_are_one_line(options, word, tmp_path, capsys):
    assert main(["study", *options, "--out", str(tmp_path / "study")]) == 1
    error = capsys.readouterr().err
    assert word in error
    assert error.count("\n") == 1
