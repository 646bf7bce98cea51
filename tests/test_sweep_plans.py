"""What a sweep is to do: mistakes are found first, and what is there already is counted."""

from pathlib import Path

import pytest

from umdqn.cli.main import main
from umdqn.errors import UmdqnError
from umdqn.sweeps.driver import run_sweep
from umdqn.sweeps.plan import joined, read_sweep, sweep_of
from umdqn.sweeps.pools import LocalPool
from umdqn.sweeps.results import collect

FIELDS = {"steps": 3_000, "torso.widths": "8,8"}
SWEEP = {
    "env": "grid-world",
    "agent": "dqn",
    "seeds": 2,
    "seeds_per_run": 1,
    "axes": {"discount": [0.5, 0.9]},
    "fields": FIELDS,
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"agents": ["dqn"]}, "unknown key 'agents': did you mean 'agent'?"),
        ({"steps": 500}, r"'steps' is a field: put it under \[fields\], or under \[axes\]"),
        ({"agent": []}, "an axis needs at least one value"),
        ({"axes": {"discount": []}}, "discount = .* an axis needs at least one value"),
        ({"axes": {"discount": [0.5, 0.5]}}, "twice"),
        ({"axes": {"discount": 0.5}}, "axes.discount = 0.5 is not allowed: a list of values"),
        ({"axes": {"seed": [1, 2]}}, "the number `seeds` says"),
        ({"axes": {"discount": [0.5, "0.50"]}}, "the same as"),
        ({"fields": {"seeds": 3}}, "a sweep has a key 'seeds' of its own"),
        ({"axes": {"agent": ["dqn"]}}, "a sweep has a key 'agent' of its own"),
        ({"axes": {"steps": [1, 2]}}, "an axis or a shared field, not both"),
        ({"env": "grid-wrld"}, "unknown environment 'grid-wrld': did you mean 'grid-world'"),
        ({"fields": {"discont": 0.5}}, "unknown field 'discont': did you mean 'discount'"),
        ({"seeds": 0}, "seeds = 0"),
        ({"seeds": True}, "seeds = True is not allowed: must be a whole number"),
        (
            {"seeds": 2_000_000_000},
            "seeds = 2000000000 is not allowed: from 1 to 10,000",
        ),
        ({"agent": 3}, "a name or a list of names"),
    ],
)
def test_mistakes_are_found_before_anything_starts(changes, message):
    with pytest.raises(UmdqnError, match=message) as error:
        sweep_of(SWEEP | changes).jobs()
    assert "\n" not in str(error.value)


def test_compiled_environments_share_a_process_for_all_seeds(monkeypatch):
    """Two discounts are processes enough for two cores."""
    monkeypatch.setattr("umdqn.sweeps.plan.available_cores", lambda: 2)
    data = {name: value for name, value in SWEEP.items() if name != "seeds_per_run"}
    jobs = sweep_of(data | {"env": ["grid-world", "CartPole-v1"], "seeds": 3}).jobs()
    assert [job.config.all_seeds for job in jobs] == [(0, 1, 2)] * 4
    hosted = sweep_of(data | {"fields": {**FIELDS, "loop": "host"}, "seeds": 3}).jobs()
    assert [job.config.all_seeds for job in hosted] == [(0,), (1,), (2,)] * 2
    # The same configuration has the same name in every sweep; another one has another.
    assert len({job.name for job in [*jobs, *hosted]}) == len(jobs) + len(hosted)
    assert sweep_of(data | {"seeds": 3}).jobs()[0].name == jobs[0].name
    assert [job.varied for job in jobs[:2]] == ["discount 0.5", "discount 0.9"]


@pytest.mark.parametrize(
    ("cores", "seeds"),
    [
        (1, [(0, 1, 2, 3, 4)]),
        (2, [(0, 1, 2), (3, 4)]),
        (64, [(0,), (1,), (2,), (3,), (4,)]),
    ],
)
def test_seeds_are_spread_over_cores(cores, seeds, monkeypatch):
    """A process has one core, so that seeds which share it take turns."""
    monkeypatch.setattr("umdqn.sweeps.plan.available_cores", lambda: cores)
    jobs = sweep_of({"env": "grid-world", "agent": "dqn", "seeds": 5}).jobs()
    assert [job.config.all_seeds for job in jobs] == seeds
    twice = sweep_of({"env": "grid-world", "agent": ["dqn", "cdqn"], "seeds": 2}).jobs()
    assert len(twice) == (4 if cores == 64 else 2)


def test_a_sweep_goes_on_with_more_of_everything():
    def jobs(**changes):
        return sweep_of(SWEEP | changes).jobs()

    def names(jobs):
        return [job.name for job in jobs]

    def after(before, asked, begun=lambda job: True):
        plan, wanted = joined(before, asked, Path("out"), begun)
        return names(plan), names(wanted)

    first, more = jobs(), jobs(agent="cdqn")
    assert after(first, more) == ([*names(first), *names(more)], names(more))
    assert after(first, first) == (names(first), names(first))
    # Only the third seed is new, however they are put together.
    third = [name for name in names(jobs(seeds=3)) if "_seed2_" in name]
    for together in (1, 3):
        plan, wanted = after(first, jobs(seeds=3, seeds_per_run=together))
        assert plan == [*names(first), *third]
        assert sorted(wanted) == sorted(plan)
    # A hole in the middle: two ranges are left.
    middle = jobs(axes={}, fields={**FIELDS, "seed": 2})
    whole = jobs(axes={}, seeds=6, seeds_per_run=6)
    _, wanted = joined(middle, whole, Path("out"), lambda job: True)
    assert [job.config.all_seeds for job in wanted] == [(2,), (3,), (0, 1), (4, 5)]
    # A part of it is not all that there is.
    assert after(first, jobs(seeds=1)) == (names(first), names(jobs(seeds=1)))
    other = jobs(fields={**FIELDS, "steps": 4_000})
    with pytest.raises(UmdqnError, match=r"--out out holds .* with other steps or fields"):
        after(first, other)
    # What has not begun gives way.
    assert after(first, other, begun=lambda job: False) == (names(other), names(other))


def test_a_value_is_the_same_place_however_it_is_written():
    """Options give text, files give numbers; plans of before may hold either."""
    data = SWEEP | {"fields": {}}
    text = sweep_of(data | {"axes": {"discount": ["0.5", "9e-1"], "torso.widths": ["8,8"]}}).jobs()
    number = sweep_of(data | {"axes": {"discount": [0.5, 0.9], "torso.widths": [[8, 8]]}}).jobs()
    assert text == number
    assert number[0].point["discount"] == 0.5
    assert number[0].point["torso.widths"] == "8,8"
    before = [job._replace(point=job.point | {"discount": "0.5"}) for job in text[:1]]
    plan, wanted = joined(before, number, Path("out"), lambda job: True)
    assert [job.name for job in plan] == [job.name for job in number]
    assert wanted == plan


def test_files_that_are_no_sweeps(tmp_path, capsys):
    file = tmp_path / "sweep.toml"
    file.write_text("env = [")
    assert main(["sweep", str(file), "--out", str(tmp_path / "out")]) == 1
    assert f"{file} is not TOML" in capsys.readouterr().err
    file.write_text('env = "grid-world"')
    with pytest.raises(UmdqnError, match="agent = None is not allowed: a sweep needs it"):
        read_sweep(file)
    file.write_text('env = "grid-world"\nagent = "dqn"\n[fields]\ndiscont = 0.5')
    assert main(["sweep", str(file), "--out", str(tmp_path / "out")]) == 1
    assert f"{file}: unknown field 'discont'" in capsys.readouterr().err
    assert main(["sweep", str(file), "--agent", "dqn", "--out", str(tmp_path / "out")]) == 1
    assert "by a file or by options, not both: 'agent'" in capsys.readouterr().err
    assert main(["sweep", "missing.toml", "--out", str(tmp_path / "out")]) == 1
    assert "missing.toml: No such file" in capsys.readouterr().err
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("")
    with pytest.raises(UmdqnError, match="not empty, and not a sweep"):
        run_sweep([], foreign, LocalPool)
    with pytest.raises(UmdqnError, match="is not a sweep"):
        collect(foreign)
