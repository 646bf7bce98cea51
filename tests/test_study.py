"""The study of laws: trains each case once, resumes, reports."""

import json
import shutil

import pytest

from umdqn.analysis import SECTIONS, LawsStudy
from umdqn.cli import main
from umdqn.runs.files import read_sealed, write_sealed

DIRECTIONS = {"umdqn-kl-forward", "umdqn-kl-reverse", "umdqn-kl-reverse-raw"}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Three cases, one seed each, hardly trained."""
    out = tmp_path_factory.mktemp("study") / "laws"
    arguments = ["study", "laws", "--out", str(out), "--steps", "1100", "--seeds", "1"]
    assert main([*arguments, "--only", "direction"]) == 0
    return out, [*arguments, "--only", "direction"]


def test_a_study_writes_tables_and_json(study):
    out, _ = study
    results = json.loads((out / "results.json").read_text())["sections"]
    assert set(results["direction"]) == DIRECTIONS
    for result in results["direction"].values():
        assert set(result["seeds"]) == {"0"}
        assert all(0 < seed["w1_figure"] <= seed["w1_max"] for seed in result["seeds"].values())
        assert result["seconds"] > 0
    # What other sections share with these cases is known there, too.
    assert "umdqn-kl-right" in results["domain"]
    report = (out / "report.md").read_text()
    assert "| `umdqn-kl-reverse` |" in report
    assert "Direction of the KL divergence" in report


def test_what_is_done_is_not_done_again(study, capsys):
    out, arguments = study
    before = {path: path.stat().st_mtime_ns for path in out.glob("runs/*/manifest.json")}
    assert len(before) == 3
    assert main(arguments) == 0
    assert "0 cases to do" in capsys.readouterr().err
    assert before == {path: path.stat().st_mtime_ns for path in out.glob("runs/*/manifest.json")}


def test_a_lost_measurement_is_made_again_without_training(study, capsys):
    out, arguments = study
    result = out / "results" / "direction-umdqn-kl-reverse.json"
    expected = json.loads(result.read_text())["seeds"]
    manifest = out / "runs" / "direction-umdqn-kl-reverse" / "manifest.json"
    trained = manifest.stat().st_mtime_ns
    result.unlink()
    assert main(arguments) == 0
    assert "1 cases to do" in capsys.readouterr().err
    assert json.loads(result.read_text())["seeds"] == expected
    assert manifest.stat().st_mtime_ns == trained


@pytest.mark.slow
def test_a_training_that_was_cut_off_goes_on(study, tmp_path, capsys):
    out, arguments = study
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    arguments = [str(copy) if token == str(out) else token for token in arguments]
    (copy / "results" / "direction-umdqn-kl-reverse.json").unlink()
    manifest = copy / "runs" / "direction-umdqn-kl-reverse" / "manifest.json"
    write_sealed(manifest, read_sealed(manifest) | {"status": "running"})
    assert main(arguments) == 0
    assert json.loads(manifest.read_text())["status"] == "finished"
    # Nothing that is not a run is ever deleted.
    manifest.write_text("{}")
    (copy / "results" / "direction-umdqn-kl-reverse.json").unlink()
    assert main(arguments) == 1
    assert "not the manifest" in capsys.readouterr().err
    assert manifest.exists()


def test_every_case_is_a_valid_configuration(tmp_path):
    study = LawsStudy(tmp_path / "laws")
    cases = [(section, name) for section in SECTIONS for name in SECTIONS[section]]
    assert all(study.config(SECTIONS[section][name]).seeds == 5 for section, name in cases)
    # Forward KL is the right domain; Cramer on the right domain is the matrix's cell.
    assert len(cases) == 3 + 10 + 4 + 9 + 3 + 6 + 16
    keys = {study.key(section, name) for section, name in cases}
    assert len(keys) == len(cases) - 2


def test_a_case_is_known_in_every_section(study):
    """However it was trained: the direction's forward case is the right domain's."""
    out, _ = study
    again = LawsStudy(out, seeds=1, steps=1_100)
    assert set(again.results("direction")) == DIRECTIONS
    assert "umdqn-kl-right" in again.results("domain")
    assert again.key("domain", "umdqn-kl-right") not in again.todo(["domain"])


def test_finished_runs_of_another_length_are_kept(study, capsys):
    out, arguments = study
    longer = [token.replace("1100", "1300") for token in arguments]
    before = {path: path.read_bytes() for path in out.glob("runs/*/manifest.json")}
    assert main(longer) == 1
    assert "holds a run with another configuration" in capsys.readouterr().err
    assert before == {path: path.read_bytes() for path in out.glob("runs/*/manifest.json")}
