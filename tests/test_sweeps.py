"""Sweeps: every run once, whatever is killed on the way."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from umdqn.cli.main import main
from umdqn.errors import Notice, UmdqnError
from umdqn.runs.directory import RunDirectory
from umdqn.runs.files import locked, read_sealed, write_sealed
from umdqn.sweeps.driver import run_sweep
from umdqn.sweeps.plan import sweep_of
from umdqn.sweeps.pools import LocalPool
from umdqn.sweeps.results import collect, write_results
from umdqn.sweeps.work import Outcome, Place, claim_core, failure
from witness import SMALL, children, descendants, listening, options

FIELDS = SMALL | {"steps": 3_000, "evaluation.every": 500}
SWEEP = {
    "env": "grid-world",
    "agent": "dqn",
    "seeds": 2,
    "seeds_per_run": 1,
    "axes": {"discount": [0.5, 0.9]},
    "fields": FIELDS,
}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A sweep of four runs, and its results as bytes."""
    out = tmp_path_factory.mktemp("sweep") / "out"
    outcomes = run_sweep(sweep_of(SWEEP).jobs(), out, LocalPool)
    assert set(outcomes.values()) == {Outcome("finished")}
    return out, [path.read_bytes() for path in write_results(out)]


def test_every_run_is_done_once(undisturbed):
    out, _ = undisturbed
    records = collect(out)
    # Two discounts, two seeds, six evaluations.
    assert len(records) == 2 * 2 * 6
    places = {(r["discount"], r["seed"], r["step"]) for r in records}
    assert len(places) == len(records)
    assert {r["discount"] for r in records} == {0.5, 0.9}


def test_what_is_done_is_not_done_again(undisturbed):
    out, results = undisturbed
    manifests = {path: path.stat().st_mtime_ns for path in out.glob("runs/*/manifest.json")}
    assert len(manifests) == 4

    def none(root):
        raise AssertionError("nothing is left to do")

    run_sweep(sweep_of(SWEEP).jobs(), out, none)
    assert [path.read_bytes() for path in write_results(out)] == results
    assert all(path.stat().st_mtime_ns == before for path, before in manifests.items())


@pytest.mark.slow
def test_killed_workers_and_drivers_change_nothing(undisturbed, tmp_path):
    _, results = undisturbed
    out = tmp_path / "out"
    file = tmp_path / "sweep.toml"
    lines = [f'"{name}" = {value!r}' for name, value in FIELDS.items()]
    file.write_text(
        'env = "grid-world"\nagent = "dqn"\nseeds = 2\nseeds_per_run = 1\n'
        "[axes]\ndiscount = [0.5, 0.9]\n[fields]\n" + "\n".join(lines)
    )
    command = [sys.executable, "-m", "umdqn", "sweep", str(file), "--out", str(out)]
    for victim in ("driver", "worker"):
        driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seen = len(list(out.glob("runs/*/checkpoints/*.json")))
        deadline = time.monotonic() + 120
        while len(list(out.glob("runs/*/checkpoints/*.json"))) < seen + 4:
            assert time.monotonic() < deadline
            assert driver.poll() is None
            time.sleep(0.05)
        os.kill(driver.pid if victim == "driver" else children(out)[0], signal.SIGKILL)
        # A driver whose worker is killed does all there is to do.
        assert victim == "worker" or driver.wait() == -signal.SIGKILL
    assert driver.wait() == 0
    assert [path.read_bytes() for path in write_results(out)] == results
    assert len(list(out.glob("runs/*"))) == 4
    assert not list(out.rglob(".*"))


def test_failures_are_listed_and_stop_nothing(tmp_path, monkeypatch, capsys):
    (tmp_path / "broken_env.py").write_text(
        "import gymnasium as gym\n"
        "class Env(gym.Env):\n"
        "    observation_space = gym.spaces.Box(-1, 1, (2,))\n"
        "    action_space = gym.spaces.Discrete(2)\n"
        "    def reset(self, seed=None, options=None):\n"
        "        super().reset(seed=seed)\n"
        "        self.t = 0\n"
        "        return self.observation_space.sample() * 0, {}\n"
        "    def step(self, action):\n"
        "        self.t += 1\n"
        "        if self.t > 50:\n"
        "            raise ValueError('the motor is on fire')\n"
        "        return self.observation_space.sample() * 0, 0.0, False, False, {}\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.syspath_prepend(str(tmp_path))
    out = tmp_path / "out"
    code = main(
        [
            "sweep",
            "--env",
            "broken_env:Env",
            "grid-world",
            "--agent",
            "dqn",
            *options(FIELDS),
            "--out",
            str(out),
            "--domain",
            "-1",
            "1",
        ]
    )
    printed = capsys.readouterr()
    assert code == 1
    assert "1 of 2 runs failed" in printed.err
    assert "the motor is on fire" in printed.err
    assert "Traceback" not in printed.err
    assert "grid-world" in printed.out
    assert {record["env"] for record in collect(out)} == {"grid-world"}
    # Nor does a comparison pass over what is missing.
    with pytest.warns(Notice, match=f"{out}: 1 of 2 runs are not finished"):
        assert main(["compare", str(out), "--out", str(tmp_path / "report")]) == 0
    assert f"{out}: 1 of 2 runs are not finished" in (tmp_path / "report/report.md").read_text()


def test_a_damaged_run_is_one_failure(undisturbed, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(undisturbed[0], out)
    damaged, torn, *_ = sorted(out.glob("runs/*"))
    (damaged / "manifest.json").write_text("{")
    # Killed while it wrote its last checkpoint.
    manifest = torn / "manifest.json"
    write_sealed(manifest, read_sealed(manifest) | {"status": "running", "step": 2_800})
    (torn / "checkpoints/0000003000.loop.safetensors").write_bytes(b"")
    outcomes = run_sweep(sweep_of(SWEEP).jobs(), out, LocalPool)
    (note,) = outcomes[torn.name].notes
    assert "0000003000.loop.safetensors is corrupt" in note
    assert note.endswith("the checkpoint of step 2,800 is used instead")
    assert outcomes[damaged.name].status == "failed"
    assert "manifest.json is corrupt" in outcomes[damaged.name].reason
    assert [end.status for end in outcomes.values()].count("finished") == 3
    assert len(collect(out)) == 3 * 6


def test_a_plan_that_somebody_changed_is_refused(undisturbed, tmp_path):
    out = shutil.copytree(undisturbed[0], tmp_path / "out")
    plan = out / "sweep.json"
    sound = read_sealed(plan)
    plan.write_text(plan.read_text().replace('"dqn"', '"cdqn"', 1))
    with pytest.raises(UmdqnError, match=r"sweep\.json is corrupt: its checksum is wrong"):
        collect(out)
    first = sound["jobs"][0]
    for change, message in (
        ({"name": "../../run"}, "at `jobs.0..name`"),
        ({"name": 5}, "expected `str`, got `int`"),
        ({"point": [1]}, "expected `object`, got `array`"),
        ({"config": {"wings": 2}}, "unknown fields: wings"),
        ({"config": first["config"] | {"steps": -1}}, "steps = -1 is not allowed"),
    ):
        write_sealed(plan, sound | {"jobs": [first | change]})
        with pytest.raises(UmdqnError, match=rf"sweep\.json is corrupt: .*{message}"):
            collect(out)
    write_sealed(plan, sound | {"format_version": 1})
    with pytest.raises(UmdqnError, match="has format version 1 and this umdqn reads 3"):
        collect(out)


def test_tables_of_sweeps_are_compared_like_sweeps(undisturbed, tmp_path, capsys):
    out, _ = undisturbed
    assert main(["compare", str(out), "--out", str(tmp_path / "sweep")]) == 0
    assert main(["compare", str(out / "results.csv"), "--out", str(tmp_path / "table")]) == 0
    tables = [(tmp_path / name / "tables.json").read_text() for name in ("sweep", "table")]
    assert tables[0] == tables[1]
    assert '"algorithm": "dqn discount=0.9"' in tables[0]
    # What was compared lies beside it, so that several sweeps become one table.
    assert (tmp_path / "table" / "results.csv").read_bytes() == (out / "results.csv").read_bytes()
    # Again, and elsewhere.
    assert main(["compare", str(out), "--out", str(tmp_path / "table")]) == 0
    foreign = tmp_path / "thesis"
    foreign.mkdir()
    (foreign / "report.md").write_text("mine")
    assert main(["compare", str(out), "--out", str(foreign)]) == 1
    assert f"--out {foreign}: not empty, and not a report" in capsys.readouterr().err
    assert [path.read_text() for path in foreign.iterdir()] == ["mine"]
    for text, why in (
        ("a,b\n1,2\n", "it has no env"),
        ("", "it is empty"),
        ("env,agent,step,seed,return_mean\na,b,1.5,0,1\n", "invalid literal"),
        ("env,agent,step,seed,return_mean\na,b\n", ""),
    ):
        (tmp_path / "bad.csv").write_text(text)
        assert main(["compare", str(tmp_path / "bad.csv"), "--out", str(tmp_path / "no")]) == 1
        assert f"bad.csv is not the table of a sweep: {why}" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


def test_more_seeds_leave_those_alone_that_are_there(undisturbed, tmp_path):
    out = shutil.copytree(undisturbed[0], tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in out.glob("runs/*/manifest.json")}
    more = sweep_of(SWEEP | {"seeds": 3, "seeds_per_run": 3}).jobs()
    outcomes = run_sweep(more, out, LocalPool)
    assert all(path.stat().st_mtime_ns == then for path, then in before.items())
    assert [end.status for end in outcomes.values()] == ["finished"] * 6
    new = [name for name in outcomes if name not in {path.parent.name for path in before}]
    assert ["_seed2_" in name for name in new] == [True, True]
    found = {(r["discount"], r["seed"]) for r in collect(out)}
    assert found == {(discount, seed) for discount in (0.5, 0.9) for seed in range(3)}


def test_one_sweep_is_not_driven_twice_at_once(undisturbed):
    out, _ = undisturbed
    with locked(out), pytest.raises(UmdqnError, match="another process is training in"):
        run_sweep(sweep_of(SWEEP).jobs(), out, LocalPool)


def test_jobs_side_by_side_have_cores_of_their_own():
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("processes cannot be bound to cores here")
    before = os.sched_getaffinity(0)
    try:
        first = claim_core()
        (core,) = os.sched_getaffinity(0)
        # The only core that is left to choose from has an owner.
        second = claim_core()
        assert second is None or first is None
        assert os.sched_getaffinity(0) == {core}
        if first is not None:
            first.release()
            again = claim_core()
            assert again is not None
            again.release()
    finally:
        os.sched_setaffinity(0, before)


def test_failures_by_hand():
    ends = {"a": Outcome("finished"), "b": Outcome("failed", "out of memory")}
    assert str(failure(ends)) == "1 of 2 runs failed: b (out of memory)"
    assert failure({"a": Outcome("finished")}) is None


class Dying:
    """A pool all of whose jobs die at once."""

    free = 1

    def __init__(self, root):
        self.submitted: list[str] = []

    def check(self, configs): ...

    def submit(self, name):
        self.submitted.append(name)

    def ended(self):
        dead, self.submitted = self.submitted, []
        return {name: Outcome("lost", "its process ended with signal 9") for name in dead}

    def interrupt(self): ...

    def close(self): ...


def test_a_job_that_always_dies_is_given_up(tmp_path):
    jobs = sweep_of(SWEEP | {"axes": {}, "seeds": 1}).jobs()
    outcomes = run_sweep(jobs, tmp_path / "out", Dying)
    assert outcomes[jobs[0].name] == Outcome(
        "failed", "lost 5 times before its first checkpoint: its process ended with signal 9"
    )


@pytest.mark.slow
def test_a_sweep_on_ray_is_the_same_sweep(undisturbed, tmp_path):
    pytest.importorskip("ray")
    first, _ = undisturbed
    out = tmp_path / "out"
    # In a process of its own: Ray leaves threads behind.
    command = [sys.executable, "-m", "umdqn", "sweep", "--env", "grid-world", "--agent", "dqn"]
    command += ["--seeds", "2", "--seeds-per-run", "1", "--vary", "discount", "0.5", "0.9"]
    command += [*options(FIELDS), "--out", str(out), "--ray", "local"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    seen = set()
    while process.poll() is None:
        seen |= listening(descendants(process.pid))
        time.sleep(0.1)
    assert process.returncode == 0, process.communicate()[1]
    # Ray's servers are for this machine alone.
    assert seen == {"127.0.0.1"}
    place, other = Place(first), Place(out)
    names = sorted(path.name for path in (first / "runs").iterdir())
    assert sorted(path.name for path in (out / "runs").iterdir()) == names
    for name in names:
        ours, theirs = (RunDirectory(at.run(name)).records.path for at in (place, other))
        assert ours.read_bytes() == theirs.read_bytes()
