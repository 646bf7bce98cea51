"""Runs: reproducible to the bit, saved whole, loadable, safe against what is corrupt."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import umdqn
from quick import quick
from umdqn.analysis.accuracy import Views, compare
from umdqn.analysis.exact import exact_laws, optimal_policy
from umdqn.analysis.reports import accuracy_report, evaluation_report
from umdqn.errors import UmdqnError
from umdqn.runs.build import build_loop
from umdqn.runs.configure import configure
from umdqn.runs.fields import from_dict, to_dict
from umdqn.runs.files import read_sealed, write_bytes, write_sealed
from umdqn.runs.presets import PRESETS
from umdqn.runs.records import Records
from umdqn.runs.run import load
from umdqn.runs.start import train_config

SMALL = {
    "steps": 1_200,
    "replay.warmup": 300,
    "evaluation.every": 600,
    "checkpoint_every": 500,
    "chunk": 400,
}


def checksum(path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_same_seed_same_bits_whatever_runs_beside_it(tmp_path):
    """Two runs give identical checkpoints; a seed's bits do not depend on the other seeds."""
    config = configure("grid-world", "dqn", overrides=SMALL | {"seeds": 2})
    first = train_config(config, tmp_path / "first")
    again = train_config(config, tmp_path / "again")
    assert first.directory.checkpoints.steps() == [0, 500, 1_000, 1_200]
    names = [path.name for path in (first.path / "checkpoints").iterdir()]
    for name in names:
        one, other = (run.path / "checkpoints" / name for run in (first, again))
        assert checksum(one) == checksum(other)
    assert checksum(first.directory.records.path) == checksum(again.directory.records.path)

    single = configure("grid-world", "dqn", overrides=SMALL | {"seed": 1})
    alone = train_config(single, tmp_path / "alone")
    for together, apart in zip(
        jax.tree.leaves(first.learned[1]), jax.tree.leaves(alone.learned[1]), strict=True
    ):
        np.testing.assert_array_equal(together, apart)
    leaves = zip(jax.tree.leaves(first.learned[0]), jax.tree.leaves(first.learned[1]), strict=True)
    assert any(not np.array_equal(one, other) for one, other in leaves)


def test_a_run_directory_says_what_it_is(small_run):
    manifest = json.loads(small_run.directory.manifest_path.read_text())
    assert manifest["status"] == "finished"
    assert manifest["step"] == 3_000
    assert manifest["seeds"] == [0, 1]
    assert manifest["peak_memory"] is None or manifest["peak_memory"] > 10**8
    assert manifest["versions"]["jax"] == jax.__version__
    assert from_dict(type(small_run.config), manifest["config"]) == small_run.config
    records = small_run.directory.read_metrics()
    assert [(r["step"], r["seed"]) for r in records] == [
        (step, seed) for step in (1_000, 2_000, 3_000) for seed in (0, 1)
    ]
    assert records[0]["loss_mean"] is None  # all random steps, no update yet
    assert records[-1]["loss_mean"] > 0
    assert not list(small_run.path.rglob(".*"))


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("agent", umdqn.ALGORITHMS)
def test_configurations_survive_json(agent, preset):
    config = configure("grid-world", agent, preset)
    assert from_dict(type(config), json.loads(json.dumps(to_dict(config)))) == config


def test_the_python_interface(small_run):
    run = umdqn.load(small_run.path)
    law = run.law([2, 6])[0]
    assert len(run.law([2, 6])) == 4
    assert 0 < float(law.cdf(0.3)) < 1
    assert float(law.cvar(0.1)) < float(law.quantile(0.1)) < float(law.quantile(0.9))
    assert law.sample(jax.random.key(0), 1_000).shape == (1_000,)
    assert float(run.law((2, 6), seed=1)[0].mean) != float(law.mean)
    assert repr(run) == f"Run('{run.path}': umdqn-c on grid-world, 2 seeds, {run.step:,} steps)"
    with pytest.raises(UmdqnError, match="seed = 7"):
        run.law([2, 6], seed=7)
    with pytest.raises(UmdqnError, match="observation"):
        run.law([2, 6, 1])


def test_evaluation_is_repeatable_and_consistent(small_run):
    report = evaluation_report(small_run, 40)
    assert report == evaluation_report(load(small_run.path), 40)
    assert report["episodes"] == 80
    seeds = report["seeds"].values()
    for key in ("return_mean", "discounted_mean"):
        assert report[key] == pytest.approx(np.mean([seed[key] for seed in seeds]), abs=1e-6)


def test_the_best_checkpoint_is_each_seeds_own_and_evaluated_afresh(small_run, tmp_path):
    copy = shutil.copytree(small_run.path, tmp_path / "copy")
    # The best evaluation of seed 0 has no checkpoint; of those that have, the later of two equals.
    scores = {1_000: (9.0, 1.0), 2_000: (5.0, 2.0), 3_000: (4.0, 2.0)}
    records = [
        {"step": step, "seed": seed, "return_mean": score}
        for step, of_seeds in scores.items()
        for seed, score in enumerate(of_seeds)
    ]
    rewrite_metrics(copy, "".join(json.dumps(record) + "\n" for record in records))
    best, last = load(copy, "best"), load(copy)
    assert (best.steps, best.step) == ({0: 2_000, 1: 3_000}, 3_000)
    for seed, step in best.steps.items():
        for mine, own in zip(
            jax.tree.leaves(best.learned[seed]),
            jax.tree.leaves(load(copy, step).learned[seed]),
            strict=True,
        ):
            np.testing.assert_array_equal(mine, own)
    # Seed 1 has the same parameters either way, and meets other episodes.
    fresh, seen = (run.evaluate(40)[1].discounted for run in (best, last))
    assert not np.array_equal(fresh, seen)
    rewrite_metrics(copy, "")
    with pytest.raises(UmdqnError, match="no evaluation at a checkpoint"):
        load(copy, "best")


def rewrite_metrics(run, text):
    """Replace the metrics, and what the manifest says of them."""
    (run / "metrics.jsonl").write_text(text)
    manifest = run / "manifest.json"
    write_sealed(manifest, read_sealed(manifest) | {"metrics": Records(run).mark()})


@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_distances_of_shifted_laws_by_hand(shift):
    """Every exact law moved by 0.1: W1 and the error of the mean are 0.1."""
    laws = [row[:2] for row in exact_laws(optimal_policy())[:1]]
    z = jnp.linspace(-4, 4, 8_001)

    def views(shift):
        rows = [
            [(law.cdf(z - shift), law.mean + shift, law.std, law.cvar(0.1) + shift) for law in row]
            for row in laws
        ]
        return Views(*(np.array([[law[i] for law in row] for row in rows]) for i in range(4)))

    moved = views(shift)
    found = compare(moved, views(0.0), 0.001, moved.mean)
    np.testing.assert_allclose(found.w1, shift, atol=2e-4)
    np.testing.assert_allclose(found.mean_error, shift, atol=1e-5)
    np.testing.assert_allclose(found.cvar_error, shift, atol=1e-5)
    np.testing.assert_allclose(found.std_error, 0.0, atol=1e-6)
    # Moving one Gaussian by d moves its CDF by at most d / (std sqrt(2 pi)).
    assert np.all(found.ks <= shift / (0.1 * np.sqrt(2 * np.pi)) + 1e-5)
    assert np.all(found.cramer**2 <= found.w1 * found.ks + 1e-6)


def test_accuracy_report_has_its_keys(small_run):
    report = accuracy_report(small_run)
    keys = {"w1", "w1_max", "cramer", "ks", "mean_error", "w1_greedy", "optimal_actions"}
    keys |= {"std_error", "cvar_error", "crossing_rate", "w1_figure"}
    keys |= {"normalised_w1", "truth_error", "states", "floor"}
    assert keys <= set(report)
    for seed in report["seeds"].values():
        assert set(seed) == keys | {"step"}
        assert seed["crossing_rate"] == 0
        assert 0 < seed["mean_error"] <= seed["w1"] <= seed["w1_max"]
        assert 0 <= seed["optimal_actions"] <= 47
        # 3,000 transitions tell something of 188 pairs, but not all.
        assert 0.01 < seed["floor"] < 1


def test_divergence_stops_the_run_and_keeps_the_last_good_checkpoint(tmp_path):
    config = configure(
        overrides=SMALL
        | {"optimiser.learning_rate": 1e30, "replay.warmup": 450, "checkpoint_every": 400}
    )
    with pytest.raises(UmdqnError, match=r"loss of seed 0 was not finite at step \d+") as error:
        train_config(config, tmp_path / "run")
    run = load(tmp_path / "run")
    assert run.manifest["status"] == "failed"
    assert run.step == 400
    assert str(run.directory.checkpoints.agent_path(400)) in str(error.value)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(run.learned))


@pytest.mark.parametrize(
    "number", quick([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], [signal.SIGTERM])
)
def test_a_signal_to_stop_saves_and_exits_cleanly(number, tmp_path):
    out = tmp_path / "run"
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "umdqn",
            "train",
            "grid-world",
            "dqn",
            "--steps",
            "1e8",
            "--chunk",
            "200",
            "--evaluation.every",
            "200",
            "--out",
            str(out),
        ],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)},
    )
    metrics = out / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while not (metrics.exists() and metrics.read_text()) and time.monotonic() < deadline:
        time.sleep(0.2)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    run = load(out)
    assert run.manifest["status"] == "interrupted"
    assert run.step == run.manifest["step"] >= 200
    assert f"interrupted at step {run.step}" in errors
    assert f"umdqn train --resume {out}" in errors


def test_a_run_never_overwrites(tmp_path, monkeypatch):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("years of work")
    with pytest.raises(UmdqnError, match="not empty"):
        train_config(configure(overrides=SMALL), tmp_path / "full")
    assert os.listdir(tmp_path / "full") == ["thesis.tex"]
    with pytest.raises(UmdqnError, match="cannot make this directory"):
        train_config(configure(overrides=SMALL), tmp_path / "full" / "thesis.tex" / "run")

    from umdqn.runs.directory import RunDirectory

    monkeypatch.chdir(tmp_path)
    made = {RunDirectory.claim(configure(), None).path for _ in range(20)}
    assert len(made) == 20


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_bytes(path, b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UmdqnError, match="No space left"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_naming_a_part_keeps_the_presets_fields():
    plain = configure(preset="tuned")
    assert configure(preset="tuned", overrides={"metric": "cramer"}) == plain
    other = configure(preset="tuned", overrides={"metric": "kl", "metric.points": 50})
    assert (other.metric.sampling, other.metric.points) == ("stratified", 50)


def test_a_manifest_of_an_older_version_takes_defaults(small_run, tmp_path):
    config = to_dict(small_run.config)
    del config["representation"]["steepness"], config["chunk"]
    assert from_dict(type(small_run.config), config) == small_run.config


def test_spoilt_parameters_are_noticed_at_the_end_of_a_chunk():
    config = configure(overrides=SMALL | {"optimiser.learning_rate": 1e30})
    loop = build_loop(config)
    state, progress = jax.jit(loop.chunk)(
        loop.init(jax.random.key(0)), jnp.int32(0), jnp.int32(300)
    )
    assert int(progress.first_bad_step) == -1
    spoilt = jax.tree.map(lambda leaf: leaf * jnp.nan, state.agent.params)
    state = state._replace(agent=state.agent._replace(params=spoilt))
    _, progress = jax.jit(loop.chunk)(state, jnp.int32(300), jnp.int32(0))
    assert int(progress.first_bad_step) == 300


def test_presets_follow_the_parts():
    """What a preset says of a metric holds wherever the metric is used, and nowhere else."""

    def tuned(agent, **parts):
        return configure("grid-world", agent, "tuned", parts)

    assert tuned("umdqn-w", metric="cramer").metric.root is False
    assert tuned("umdqn-c", metric="wasserstein").metric.kappa == 0.0
    assert tuned("qr-dqn", metric="mean").metric.kappa == 1.0
    assert tuned("umdqn-c").representation.point_scale == 60.0
    assert tuned("umdqn-c", representation="umnn-qf").representation.point_scale == 4.0
    # Naming the part that an algorithm has does not undo the algorithm.
    assert tuned("iqn", metric="wasserstein") == tuned("iqn")
