"""The study of laws: trains each case once, resumes, reports."""

import json
import shutil

import pytest

from umdqn.cli.main import main
from umdqn.errors import UmdqnError
from umdqn.runs.files import read_sealed, write_sealed
from umdqn.studies.laws.cases import SECTIONS
from umdqn.studies.laws.study import LawsStudy
from umdqn.studies.study import run_study
from umdqn.sweeps.pools import LocalPool

DIRECTIONS = {"umdqn-kl-forward", "umdqn-kl-reverse", "umdqn-kl-reverse-raw"}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Three cases, one seed each, hardly trained."""
    out = tmp_path_factory.mktemp("study") / "laws"
    arguments = ["study", "laws", "--out", str(out), "--steps", "1100", "--seeds", "1"]
    assert main([*arguments, "--only", "direction"]) == 0
    return out, [*arguments, "--only", "direction"]


def of_reverse(out):
    """The run and the measured result of one case."""
    study = LawsStudy(out, 1, 1_100)
    job = study.job("direction", "umdqn-kl-reverse")
    return study.run_path(job) / "manifest.json", study.result_path(job)


def manifests(out):
    return {path: path.stat().st_mtime_ns for path in out.glob("sweep/runs/*/manifest.json")}


def test_a_study_writes_tables_and_json(study):
    out, _ = study
    results = json.loads((out / "results.json").read_text())["sections"]
    assert set(results["direction"]) == DIRECTIONS
    for result in results["direction"].values():
        assert set(result["seeds"]) == {"0"}
        assert all(0 < seed["w1_figure"] <= seed["w1_max"] for seed in result["seeds"].values())
        assert result["seconds"] > 0
    # Cases that other sections share with these are reported there, too.
    assert "umdqn-kl-right" in results["domain"]
    report = (out / "report.md").read_text()
    assert "| umdqn-kl-reverse |" in report
    assert "Direction of the KL divergence" in report


def test_what_is_done_is_not_done_again(study, capsys):
    out, arguments = study
    before = manifests(out)
    assert len(before) == 3
    assert main(arguments) == 0
    assert "0 of 3 trainings are left" in capsys.readouterr().err
    assert before == manifests(out)


def test_a_lost_measurement_is_made_again_without_training(study, capsys):
    out, arguments = study
    manifest, result = of_reverse(out)
    expected = json.loads(result.read_text())["seeds"]
    trained = manifest.stat().st_mtime_ns
    result.unlink()
    assert main(arguments) == 0
    printed = capsys.readouterr().err
    assert "0 of 3 trainings are left" in printed
    assert printed.count("measuring") == 1
    assert "measuring direction-umdqn-kl-reverse" in printed
    assert json.loads(result.read_text())["seeds"] == expected
    assert manifest.stat().st_mtime_ns == trained


@pytest.mark.slow
def test_a_training_that_was_cut_off_is_resumed(study, tmp_path, capsys):
    out, arguments = study
    copy = tmp_path / "copy"
    shutil.copytree(out, copy)
    arguments = [str(copy) if token == str(out) else token for token in arguments]
    manifest, result = of_reverse(copy)
    result.unlink()
    write_sealed(manifest, read_sealed(manifest) | {"status": "running"})
    assert main(arguments) == 0
    assert json.loads(manifest.read_text())["status"] == "finished"
    # A directory that is not a run is never deleted; the other cases are reported.
    manifest.write_text("{}")
    result.unlink()
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert "1 of 3 runs failed" in error
    assert "not the manifest" in error
    assert manifest.exists()
    assert "| umdqn-kl-forward |" in (copy / "report.md").read_text()


def test_every_case_is_a_valid_configuration(tmp_path):
    study = LawsStudy(tmp_path / "laws")
    cases = [(section, name) for section in SECTIONS for name in SECTIONS[section]]
    assert all(study.config(SECTIONS[section][name]).seeds == 5 for section, name in cases)
    # Forward KL is the right domain; Cramer on the right domain is the matrix's cell, and so is
    # UMDQN-W at a threshold of 0.02.
    assert len(cases) == 3 + 10 + 4 + 9 + 3 + 6 + 16
    assert len(study.jobs) == len(cases) - 3
    assert {study.job(section, name).name for section, name in cases} == {
        job.name for job in study.jobs
    }


def test_a_case_is_known_in_every_section(study):
    """The direction's forward case is the right domain's: it is trained once."""
    out, _ = study
    again = LawsStudy(out, 1, 1_100, ["domain"])
    results = again.results()
    assert set(results["direction"]) == DIRECTIONS
    assert set(results["domain"]) == {"umdqn-kl-right"}
    left = again.left()
    assert again.job("domain", "umdqn-kl-right").name not in {job.name for job in left}
    assert len(left) == len(SECTIONS["domain"]) - 1


@pytest.mark.slow
def test_more_seeds_are_trained_beside_those_there(study, tmp_path):
    copy = shutil.copytree(study[0], tmp_path / "copy")
    before = manifests(copy)
    more = LawsStudy(copy, 2, 1_100, ["direction"])
    ended = run_study(more, LocalPool)
    assert all(end.status == "finished" for end in ended.outcomes.values())
    assert before.items() <= manifests(copy).items()
    assert len(manifests(copy)) == 6
    for result in more.results()["direction"].values():
        assert list(result["seeds"]) == ["0", "1"]
        assert {len(counts) for counts in result["optimal_by_step"].values()} == {2}


def test_finished_runs_of_another_length_are_kept(study, capsys):
    out, arguments = study
    longer = [token.replace("1100", "1300") for token in arguments]
    before = {path: path.read_bytes() for path in manifests(out)}
    assert main(longer) == 1
    assert "with other steps or fields: give another --out" in capsys.readouterr().err
    assert before == {path: path.read_bytes() for path in manifests(out)}


def test_sections_have_names(tmp_path):
    with pytest.raises(UmdqnError, match="unknown section 'directions': did you mean 'direction'"):
        LawsStudy(tmp_path, only=["directions"])
