"""Callbacks and logs."""

import csv
import json
import subprocess
import sys

import pytest

import umdqn
from umdqn.cli.main import main
from umdqn.errors import UmdqnError
from umdqn.runs.callbacks import Callback
from umdqn.runs.directory import RunDirectory
from umdqn.runs.logs import loggers

FIELDS = {
    "replay.warmup": 50,
    "evaluation.every": 100,
    "evaluation.episodes": 3,
    "checkpoint_every": 150,
    "chunk": 50,
    "torso.widths": "8,8",
    "seeds": 2,
}


class Heard(Callback):
    def __init__(self):
        self.events = []

    def on_start(self, path, config, step):
        self.events.append(("start", step))

    def on_chunk(self, report):
        assert len(report.progress) == 2
        self.events.append(("chunk", report.step))

    def on_evaluation(self, step, records):
        assert [record["seed"] for record in records] == [0, 1]
        self.events.append(("evaluation", step))

    def on_checkpoint(self, step, path):
        assert umdqn.load(path, step).step == step
        self.events.append(("checkpoint", step))

    def on_end(self, status):
        self.events.append(("end", status))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with every log, and what a callback heard of it."""
    heard = Heard()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WANDB_MODE", "offline")
        patch.setenv("WANDB_SILENT", "true")
        run = umdqn.train(
            "grid-world",
            "dqn",
            steps=200,
            out=tmp_path_factory.mktemp("runs") / "run",
            callbacks=[heard, *loggers(["tensorboard", "wandb"])],
            **FIELDS,
        )
    return run, heard.events


def test_callbacks_hear_everything_in_order(run):
    assert run[1] == [
        ("start", 0),
        ("checkpoint", 0),
        ("chunk", 50),
        ("chunk", 100),
        ("evaluation", 100),
        ("chunk", 150),
        ("checkpoint", 150),
        ("chunk", 200),
        ("evaluation", 200),
        ("checkpoint", 200),
        ("end", "finished"),
    ]


def test_metrics_as_a_table(run):
    path = run[0].path
    with (path / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    records = RunDirectory(path).read_metrics()
    assert len(rows) == 4
    for row, record in zip(rows, records, strict=True):
        assert list(row) == list(record)
        assert float(row["return_mean"]) == record["return_mean"]


def test_tensorboard_reads_what_was_logged(run):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for seed in (0, 1):
        events = EventAccumulator(str(run[0].path / "tensorboard" / f"seed-{seed}"))
        events.Reload()
        logged = [(event.step, event.value) for event in events.Scalars("return_mean")]
        expected = [
            (record["step"], pytest.approx(record["return_mean"], rel=1e-6))
            for record in RunDirectory(run[0].path).read_metrics()
            if record["seed"] == seed
        ]
        assert logged == expected


def test_weights_and_biases_offline_keeps_a_run(run):
    kept = list((run[0].path / "wandb").glob("offline-run-*/run-*.wandb"))
    assert len(kept) == 1
    assert b"return_mean/seed-1" in kept[0].read_bytes()


def test_unknown_and_missing_logs_are_one_line(monkeypatch, tmp_path, capsys):
    assert main(["train", "--log", "tensorbord", "--out", str(tmp_path / "run")]) == 1
    assert "unknown log 'tensorbord': did you mean 'tensorboard'?" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("umdqn.runs.logs.import_module", missing)
    with pytest.raises(UmdqnError, match=r"log wandb needs an extra: .*\[wandb\]'"):
        loggers(["wandb"])


def test_what_is_no_callback_is_refused_before_anything_is_made(tmp_path):
    """In a process of its own: here, types are checked before anything is called."""
    code = "import umdqn; umdqn.train('grid-world', 'dqn', out='run', callbacks=[print])"
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert process.returncode == 1
    last = process.stderr.splitlines()[-1]
    assert "callbacks = " in last
    assert "is not allowed: objects of umdqn.Callback" in last
    assert not (tmp_path / "run").exists()


def test_what_a_callback_raises_stops_the_run(tmp_path):
    class Tired(Callback):
        def on_chunk(self, report):
            if report.step == 200:
                raise RuntimeError("enough")

    path = tmp_path / "run"
    with pytest.raises(RuntimeError, match="enough"):
        umdqn.train("grid-world", "dqn", steps=300, out=path, callbacks=[Tired()], **FIELDS)
    manifest = json.loads((path / "manifest.json").read_text())
    assert manifest["status"] == "failed"
    assert manifest["reason"] == "RuntimeError: enough"
    assert umdqn.load(path).step == 150
