"""The paper's figures from one command, on the smallest of sweeps."""

import json
import re
import xml.etree.ElementTree as ET

import pytest

from umdqn.cli.main import main
from umdqn.envs.catalogue import CATALOGUE
from umdqn.errors import UmdqnError
from umdqn.runs.configure import configure
from umdqn.runs.fields import to_dict
from umdqn.studies.cost import hours, seconds
from umdqn.studies.paper import scales
from umdqn.studies.paper.reproduction import Reproduction
from umdqn.studies.paper.scales import SCALES, Part, jobs_of
from umdqn.studies.study import outlook, run_study
from umdqn.sweeps.pools import LocalPool

TINY = {
    "replay.warmup": 100,
    "replay.batch_size": 4,
    "update_every": 20,
    "evaluation.every": 100,
    "evaluation.episodes": 2,
    "torso.widths": "8,8",
}


def test_every_scale_is_made_of_valid_runs():
    for scale, parts in SCALES.items():
        envs = [env for part in parts for env in part.envs]
        assert len(envs) == len(set(envs))
        assert set(envs) <= set(CATALOGUE)
        compiled = [env for env in envs if CATALOGUE[env].compiled]
        jobs = jobs_of(scale, compiled, ("umdqn-c", "dqn"))
        assert {job.config.env for job in jobs} == set(compiled)
    assert {env for part in SCALES["paper"] for env in part.envs} == {
        env
        for env, listing in CATALOGUE.items()
        if env != "CartPole-v0" and listing.family != "finite"
    }


def test_estimates_grow_with_the_work():
    short = configure("grid-world", "umdqn-c", overrides={"steps": 10_000})
    long = configure("grid-world", "umdqn-c", overrides={"steps": 100_000})
    lazy = configure("grid-world", "umdqn-c", overrides={"steps": 100_000, "update_every": 4})
    assert seconds(short) < seconds(lazy) < seconds(long)
    jobs = jobs_of("short", ["grid-world"], ("umdqn-c", "dqn", "qr-dqn"))
    # The longest job bounds what more cores can do.
    assert hours(jobs, cores=1) > hours(jobs, cores=2) >= hours(jobs, cores=64) > 0
    assert hours([]) == 0


PART = Part(("grid-world",), ("dqn", "cdqn"), "paper", 400, 2, TINY)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Curves and a comparison of two agents on the grid world."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(scales.SCALES, "tiny", (PART,))
        names = ("laws-baselines", "comparison")
        reproduction = Reproduction(tmp_path_factory.mktemp("paper") / "out", "tiny", names)
        assert outlook(reproduction, 2).startswith("2 of 2 trainings are left, about 1 min on 2 ")
        ended = run_study(reproduction, LocalPool)
        assert [end.status for end in ended.outcomes.values()] == ["finished"] * 2
        return reproduction, ended.written


def test_figures_are_pictures_and_drawings(made):
    reproduction, _ = made
    statistics = {"aggregates", "efficiency", "profiles", "improvement"}
    names = {"laws-baselines", "comparison"} | statistics
    assert {path.stem for path in reproduction.out.glob("*.png")} == names
    for path in reproduction.out.glob("*.svg"):
        assert ET.parse(path).getroot().tag.endswith("svg")
    assert {path.stem for path in reproduction.out.glob("*.svg")} == names


def test_the_report_is_one_file_that_says_everything(made):
    reproduction, (markdown, page, tables, _) = made
    assert reproduction.left() == []
    text = page.read_text()
    # Nothing is fetched from anywhere.
    assert not re.findall(r'(?:src|href)="(?!data:)', text)
    assert text.count("<img ") == 6
    for needed in ("grid-world", "cdqn", "0, 1", "jax 0.", "replay", "400"):
        assert needed.lower() in text.lower()
    table = markdown.read_text()
    assert "| grid-world | dqn | paper | 400 | 0, 1 |" in table
    assert re.search(r"\| dqn \| [12] \| [12]\.00 \|", table)
    data = json.loads(tables.read_text())
    assert sorted(row["agent"] for row in data["What was run"][0]) == ["cdqn", "dqn"]
    for row in (row for of_section in data.values() for rows in of_section for row in rows):
        assert f"| {' | '.join(row.values())} |" in table


def test_what_was_made_before_is_found_again(made, monkeypatch):
    """Also by a version whose configurations have one field more, and so other names."""
    monkeypatch.setitem(scales.SCALES, "tiny", (PART,))
    monkeypatch.setattr("umdqn.sweeps.plan.to_dict", lambda config: {**to_dict(config), "new": 1})
    again = Reproduction(made[0].out, "tiny", ["laws-baselines"])
    assert again.names == ("laws-baselines", "comparison")
    assert not {job.name for job in again.jobs} & {job.name for job in made[0].jobs}
    assert again.left() == []


def test_mistakes_are_one_line(tmp_path, capsys):
    out = ["--out", str(tmp_path / "out")]
    assert main(["reproduce", "figure-1", *out]) == 1
    assert "unknown figure 'figure-1'" in capsys.readouterr().err
    assert main(["reproduce", "--scale", "smok", *out]) == 1
    assert "unknown scale 'smok': did you mean 'smoke'?" in capsys.readouterr().err
    assert main(["reproduce", "--env", "CartPole-v2", *out]) == 1
    assert "did you mean 'CartPole-v1'?" in capsys.readouterr().err
    with pytest.raises(UmdqnError, match="is not a sweep"):
        Reproduction(tmp_path, "smoke", ["curves"]).write()


def test_a_directory_is_for_one_scale(tmp_path):
    made = Reproduction(tmp_path / "new", "smoke", ["curves"])
    made.claim()
    made.claim()
    with pytest.raises(UmdqnError, match=r"holds a reproduction at scale smoke, not a .* short"):
        Reproduction(tmp_path / "new", "short", ["curves"]).claim()
    with pytest.raises(UmdqnError, match="not empty, and not a report"):
        Reproduction(tmp_path, "smoke", ["curves"]).claim()
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
