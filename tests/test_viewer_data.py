"""What the page is told of runs is what the package computes of them."""

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from umdqn.analysis.accuracy import truth
from umdqn.envs.grid_world import STATES
from umdqn.laws.law import Law
from umdqn.runs.build import environment
from umdqn.runs.configure import configure
from umdqn.runs.fields import to_dict
from umdqn.runs.files import read_sealed, write_sealed
from umdqn.runs.run import Run, load
from umdqn.viewer.curves import Window, curve
from umdqn.viewer.exact import _mdp, policy_of_truth
from umdqn.viewer.index import Index
from umdqn.viewer.loaded import Loaded
from umdqn.viewer.records import GrowingRecords, Table
from umdqn.viewer.roots import Roots
from viewing import Served, contents, served

EVERYTHING = Window(-np.inf, np.inf, 1_000)


@pytest.fixture(scope="module")
def page(small_run: Run):
    """The page of the short run; nothing that it does may change a file of it."""
    before = contents(small_run.path)
    with served([small_run.path.parent]) as found:
        yield found
    assert contents(small_run.path) == before


def copied(run: Run, to: Path, **changes: object) -> Path:
    """Copy a run, with changed fields of its manifest."""
    shutil.copytree(run.path, to)
    manifest = read_sealed(to / "manifest.json")
    write_sealed(to / "manifest.json", manifest | changes)
    return to


def test_the_list_says_what_manifest_and_records_say(page: Served, small_run: Run):
    (run,) = page.ask("runs")["runs"]
    manifest, records = small_run.manifest, small_run.directory.read_metrics()
    assert (run["name"], run["agent"], run["env"]) == ("small", "umdqn-c", "grid-world")
    assert (run["status"], run["step"], run["steps"], run["seeds"]) == ("finished", 3_000, 3_000, 2)
    assert run["rate"] == pytest.approx(3_000 * 2 / manifest["seconds"])
    last = [record["return_mean"] for record in records if record["step"] == 3_000]
    assert run["score"] == pytest.approx(sum(last) / 2)
    told = page.ask("run", run="small")
    assert told["checkpoints"] == small_run.directory.checkpoints.steps()
    assert told["config"] == manifest["config"]


@pytest.mark.parametrize("field", ["return_mean", "loss_mean"])
def test_curves_are_means_and_ranges_over_seeds(page: Served, small_run: Run, field: str):
    (series,) = page.ask("curves", run="small", field=field)["series"]
    for place, step in enumerate(series["steps"]):
        values = [r[field] for r in small_run.directory.read_metrics() if r["step"] == step]
        assert series["mean"][place] == pytest.approx(sum(values) / 2, rel=1e-5)
        assert series["low"][place] == pytest.approx(min(values), rel=1e-5)
        assert series["high"][place] == pytest.approx(max(values), rel=1e-5)
    # Before the first update there is no loss.
    assert series["steps"] == ([1_000, 2_000, 3_000] if field == "return_mean" else [2_000, 3_000])


def test_a_run_without_evaluations_has_an_empty_curve(small_run: Run, tmp_path: Path):
    copied(small_run, tmp_path / "run", status="running", step=0)
    (tmp_path / "run" / "metrics.jsonl").write_bytes(b"")
    with served([tmp_path]) as found:
        (series,) = found.ask("curves", run="run")["series"]
    assert (series["steps"], series["mean"], series["evaluations"]) == ([], [], 0)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 400), st.integers(1, 3), st.integers(2, 60), st.integers(0, 2**32 - 1))
def test_fewer_points_lose_no_spike(count: int, seeds: int, points: int, seed: int):
    random = np.random.default_rng(seed)
    steps = np.cumsum(random.integers(1, 50, count))
    table = Table(steps, tuple(range(seeds)), random.normal(size=(count, seeds)))
    whole, few = curve([table], EVERYTHING), curve([table], EVERYTHING._replace(points=points))
    assert len(few["steps"]) <= min(max(points, 2), count)
    assert few["evaluations"] == count
    assert min(few["low"]) == min(whole["low"])
    assert max(few["high"]) == max(whole["high"])
    assert few["steps"] == sorted(few["steps"])
    assert all(
        low <= mean <= high
        for low, mean, high in zip(few["low"], few["mean"], few["high"], strict=True)
    )


def line(step: int, seed: int, score: float) -> bytes:
    return json.dumps({"step": step, "seed": seed, "return_mean": score}).encode() + b"\n"


def test_records_are_read_as_they_grow(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(line(10, 0, 1.0) + line(10, 1, 3.0) + line(20, 0, 5.0)[:-9])
    records = GrowingRecords(path)
    records.refresh()
    assert records.table("return_mean").values.tolist() == [[1.0, 3.0]]
    path.write_bytes(
        path.read_bytes() + line(20, 0, 5.0)[-9:] + b"not a record\n" + line(20, 1, 7.0)
    )
    records.refresh()
    table = records.table("return_mean")
    assert table.values.tolist() == [[1.0, 3.0], [5.0, 7.0]]
    assert (table.steps.tolist(), table.seeds, records.damaged) == ([10, 20], (0, 1), 1)
    # A run that is resumed cuts its records and writes others, here as many bytes as before.
    path.write_bytes(
        line(10, 0, 2.0) + line(10, 1, 4.0) + line(30, 0, 6.0) + line(30, 1, 8.0) + b" " * 99
    )
    records.refresh()
    table = records.table("return_mean")
    assert (table.steps.tolist(), table.values.tolist()) == ([10, 30], [[2.0, 4.0], [6.0, 8.0]])


TAUS, ALPHAS = ("0.05", "0.25", "0.5", "0.75", "0.95"), ("0.05", "0.1", "0.25", "0.5")


@jax.jit
def numbers(law: Law, z: jax.Array, fractions: jax.Array) -> dict[str, jax.Array]:
    """Everything that the page tells of laws, by the methods that users call."""
    return {
        "mean": law.mean,
        "std": law.std,
        "quantiles": law.quantile(jnp.array([float(tau) for tau in TAUS])),
        "cvar": jnp.stack([law.cvar(float(alpha)) for alpha in ALPHAS], axis=-1),
        "cdf": jax.vmap(lambda one, at: one.cdf(at))(law, z),
        "qf": law.quantile(fractions),
    }


@pytest.mark.parametrize(
    ("state", "seed", "step"), [("2,6", 0, 3_000), ("0,0", 1, 3_000), ("5,4", 1, 2_000)]
)
def test_laws_are_those_of_the_run(
    page: Served, small_run: Run, state: str, seed: int, step: int
) -> None:
    run, seen = load(small_run.path, step), [int(part) for part in state.split(",")]
    found = page.ask("laws", run="small", state=state, seed=seed, step=step)
    told = found["laws"]
    z = jnp.array([one["z"] for one in told])
    known = numbers(run.law(seen, seed), z, jnp.array(found["fractions"]))
    assert [one["action"] for one in told] == list(run.spec.action_names)
    assert found["greedy"] == int(run.policy(seed).predict(np.array(seen, np.float32))[0])
    close = {"rtol": 1e-4, "atol": 1e-5 * float(np.abs(z).max())}
    for name in ("mean", "std", "qf"):
        np.testing.assert_allclose([one[name] for one in told], known[name], **close)
    np.testing.assert_allclose([one["cdf"] for one in told], known["cdf"], atol=1e-4)
    for name, keys in (("quantiles", TAUS), ("cvar", ALPHAS)):
        values = [[one[name][key] for key in keys] for one in told]
        np.testing.assert_allclose(values, known[name], **close)
    assert all(one["z"] == sorted(one["z"]) for one in told)


def test_exact_laws_of_the_grid_world_are_those_of_the_analysis(page: Served, small_run: Run):
    found = page.ask("exact", run="small", state="2,6")
    known = truth(small_run.config.discount)[STATES.index((2, 6))]
    assert found["policy"] == "an optimal policy"
    for told, law in zip(found["laws"], known, strict=True):
        assert told["mean"] == pytest.approx(float(law.mean), abs=1e-5)
        mixture = norm.cdf(told["z"], law.means[:, None], law.stds[:, None])
        np.testing.assert_allclose(told["cdf"], law.weights @ mixture, atol=1e-4)


def test_exact_laws_are_those_of_the_environment_as_the_run_made_it(tmp_path: Path):
    def run(env: str, **fields: Any) -> Loaded:
        config = configure(env, "dqn", overrides=fields)
        data = {"config": to_dict(config), "environment": to_dict(environment(config).spec)}
        return Loaded(Roots([tmp_path]), tmp_path, data)

    still = _mdp(run("FrozenLake-v1", env_kwargs={"is_slippery": False}))
    assert still is not None
    assert still.probability.max(axis=-1).min() == 1
    assert policy_of_truth(run("grid-world")) == "an optimal policy"
    assert policy_of_truth(run("grid-world", wrappers=["clip-reward:min_reward=0"])) is None


def test_the_map_has_the_greedy_action_of_every_cell(page: Served, small_run: Run):
    found = page.ask("map", run="small", seed=1)["states"]
    actions = small_run.policy(1).predict(np.array(STATES, np.float32))[0]
    assert {
        tuple(map(int, state.split(","))): one["greedy"] for state, one in found.items()
    } == dict(zip(STATES, actions.tolist(), strict=True))


def test_an_episode_follows_the_policy_and_its_laws_are_those_of_its_observations(
    page: Served, small_run: Run
):
    episode = page.ask("episode", run="small", episode=3)
    assert episode == page.ask("episode", run="small", episode=3)
    assert episode["total"] == pytest.approx(sum(scene["reward"] for scene in episode["scenes"]))
    for at, scene in enumerate(episode["scenes"]):
        seen = np.array(scene["observation"], np.float32)
        assert scene["action"] == int(small_run.predict(seen)[0])
        laws = page.ask("laws", run="small", episode=3, at=at)["laws"]
        means = [one["mean"] for one in laws]
        np.testing.assert_allclose(means, small_run.law(seen).mean, atol=1e-5)
    picture = page.request("/api/picture?run=small&episode=3&at=0")
    assert picture.headers["content-type"] == "image/png"
    assert picture.body.startswith(b"\x89PNG\r\n")
    assert "scenes" in page.refusal("picture", run="small", episode=3, at=999)


def test_calibration_is_that_of_the_run(page: Served, small_run: Run):
    found, known = page.ask("calibration", run="small", episodes=50), small_run.calibration(50)
    assert found["verdict"] == known["verdict"]
    assert found["coverage"] == pytest.approx(known["coverage"], abs=1e-3)
    assert page.ask("run", run="small")["trust"] is None


def test_a_saved_verdict_is_shown_with_its_checkpoint(small_run: Run, tmp_path: Path):
    path = copied(small_run, tmp_path / "run")
    run = load(path)
    run.calibration(20)
    run.save_trust()
    with served([path]) as page:
        trust = page.ask("run", run="run")["trust"]
        assert (trust["verdict"], trust["steps"]) == (run.trust.verdict, [3_000])
        (path / "calibration.json").write_text('{"trust": 1}')
        assert "cannot be read" in page.ask("run", run="run")["trust"]["error"]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ({"run": "other"}, "no run 'other'"),
        ({"run": "../small"}, "no run"),
        ({"run": "small", "state": "3,6"}, "state = '3,6'"),
        ({"run": "small", "state": "1,2,3"}, "2 numbers"),
        ({"run": "small", "state": "1,inf"}, "finite"),
        ({"run": "small", "state": "a"}, "state = 'a'"),
        ({"run": "small", "state": "1,1", "seed": 7}, "seed = 7"),
        ({"run": "small", "state": "1,1", "step": 1_234}, "no checkpoint at step 1234"),
        ({"run": "small", "state": "1,1", "step": -1}, "step = '-1'"),
        ({"run": "small"}, "state"),
        ({}, "run"),
    ],
)
def test_mistakes_get_one_line_that_names_the_field(page: Served, query: dict, named: str):
    assert named in page.refusal("laws", **query)


def test_runs_that_cannot_be_read_are_listed_with_the_reason(small_run: Run, tmp_path: Path):
    copied(small_run, tmp_path / "good")
    copied(small_run, tmp_path / "failed", status="failed", reason="the loss was not finite")
    copied(small_run, tmp_path / "later", format_version=99)
    damaged = copied(small_run, tmp_path / "damaged") / "manifest.json"
    damaged.write_text(damaged.read_text().replace('"step": 3000', '"step": 3001'))
    half = copied(small_run, tmp_path / "half") / "manifest.json"
    half.write_bytes(half.read_bytes()[:400])
    copied(small_run, tmp_path / "bare", config={})
    with served([tmp_path]) as page:
        runs = {run["id"]: run for run in page.ask("runs")["runs"]}
        assert {name: run["status"] for name, run in runs.items()} == {
            "good": "finished",
            "failed": "failed",
            **dict.fromkeys(("later", "damaged", "half", "bare"), "damaged"),
        }
        assert runs["failed"]["error"] == "the loss was not finite"
        assert "format version 99" in runs["later"]["error"]
        assert "checksum" in page.refusal("run", run="damaged")
        assert "not JSON" in page.refusal("laws", run="half", state="1,1")
        # Deleted, or half of it, while it is shown.
        checkpoint = tmp_path / "good" / "checkpoints" / "0000003000.safetensors"
        checkpoint.write_bytes(checkpoint.read_bytes()[:-1])
        assert "size is wrong" in page.refusal("laws", run="good", state="1,1")
        shutil.rmtree(tmp_path / "good")
        assert "is gone" in page.refusal("laws", run="good", state="1,1")


def test_numbers_that_are_none_break_nothing(small_run: Run, tmp_path: Path):
    """A score that diverged, and lines that no run writes."""
    path = copied(small_run, tmp_path / "run") / "metrics.jsonl"
    with path.open("ab") as file:
        file.write(line(4_000, 0, float("nan")) + line(4_000, 1, float("inf")))
        file.write(line(10**30, 0, 1.0) + line(-1, 0, 1.0) + b"[" * 5_000 + b"\n\xff\n")
    with served([tmp_path]) as page:
        (run,) = page.ask("runs")["runs"]
        assert (run["score"], run["step"]) == (None, 3_000)
        found = page.ask("curves", run="run")
        assert found["damaged"] == 4
        assert found["series"][0]["steps"][:3] == [1_000, 2_000, 3_000]


def test_a_directory_without_runs_is_an_empty_list(tmp_path: Path):
    with served([tmp_path]) as page:
        assert page.ask("runs") == {"roots": [str(tmp_path)], "complete": True, "runs": []}


def test_a_running_run_tells_its_pace_and_one_without_news_is_quiet(small_run: Run, tmp_path: Path):
    path = copied(small_run, tmp_path / "run", status="running", step=2_000, seconds=10.0)
    now = time.time()
    # Records say step 3,000, which was reached five seconds after the checkpoint of 2,000.
    os.utime(path / "manifest.json", (now - 10, now - 10))
    os.utime(path / "metrics.jsonl", (now - 5, now - 5))
    config = small_run.manifest["config"] | {"steps": 6_000}
    manifest = read_sealed(path / "manifest.json") | {"config": config}
    write_sealed(path / "manifest.json", manifest)
    os.utime(path / "manifest.json", (now - 10, now - 10))
    (run,) = Index(Roots([tmp_path])).runs()
    assert (run["status"], run["step"]) == ("running", 3_000)
    assert run["rate"] == pytest.approx(2 * 3_000 / 15, rel=0.01)
    assert run["remaining"] == pytest.approx(15, rel=0.01)
    # The page has been looking on: from now on, it knows the pace since then.
    index = Index(Roots([tmp_path]))
    index.runs()
    with (path / "metrics.jsonl").open("ab") as file:
        file.write(line(4_000, 0, 1.0) + line(4_000, 1, 2.0))
    os.utime(path / "metrics.jsonl", (now - 3, now - 3))
    run = index.run("run")
    assert (run["step"], run["score"]) == (4_000, 1.5)
    assert run["rate"] == pytest.approx(2 * 1_000 / 2, rel=0.01)
    assert run["remaining"] == pytest.approx(2_000 / 500, rel=0.01)
    for name in ("manifest.json", "metrics.jsonl"):
        os.utime(path / name, (now - 4_000, now - 4_000))
    (run,) = Index(Roots([tmp_path])).runs()
    assert (run["status"], run["remaining"]) == ("quiet", None)


def test_a_thousand_runs_are_listed_in_two_seconds(small_run: Run, tmp_path: Path):
    files = {
        name: (small_run.path / name).read_bytes() for name in ("manifest.json", "metrics.jsonl")
    }
    for number in range(1_000):
        path = tmp_path / f"group-{number % 10}" / f"run-{number}"
        path.mkdir(parents=True)
        for name, data in files.items():
            (path / name).write_bytes(data)
    with served([tmp_path]) as page:
        # Time of this process: others may be busy on the same machine.
        begun = time.process_time()
        assert len(page.ask("runs")["runs"]) == 1_000
        assert time.process_time() - begun < 2
