"""Runs that were killed go on as if nothing had happened."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from umdqn.errors import Notice, UmdqnError
from umdqn.runs.callbacks import Callback
from umdqn.runs.configure import configure
from umdqn.runs.run import load
from umdqn.runs.start import resume, train_config
from witness import SMALL, digest, options

TWO = SMALL | {"seeds": 2}
HOSTED = TWO | {
    "loop": "host",
    "num_envs": 2,
    "representation.hidden": "8",
    "metric.points": 10,
    "representation.intervals": 10,
}


class Stop(Exception):
    """Ends a training from outside, as a crash would."""


class CrashAt(Callback):
    def __init__(self, step):
        self.step = step

    def on_chunk(self, report):
        if report.step >= self.step:
            raise Stop


CASES = {
    "compiled": ("grid-world", "dqn", TWO),
    "host": ("CartPole-v1", "umdqn-c", HOSTED),
    "frames": (
        "ALE/Pong",
        "dqn",
        {**SMALL, "loop": "host", "steps": 500, "evaluation.every": 1_000}
        | {"evaluation.episodes": 1, "evaluation.limit": 10, "replay.capacity": 90},
    ),
}


@pytest.mark.parametrize(
    "case", ["compiled", "host", pytest.param("frames", marks=pytest.mark.slow)]
)
def test_a_resumed_run_is_the_uninterrupted_one_bit_for_bit(case, tmp_path):
    env, agent, fields = CASES[case]
    config = configure(env, agent, overrides=fields)
    whole = train_config(config, tmp_path / "whole")
    path = tmp_path / "crashed"
    with pytest.raises(Stop):
        train_config(config, path, [CrashAt(250)])
    if case == "compiled":
        with pytest.raises(Stop):
            resume(path, callbacks=[CrashAt(430)])
    again = resume(path)
    assert again.step == whole.step
    assert digest(again) == digest(whole)
    assert again.manifest["status"] == "finished"
    promise = "on the same machine and versions" if case == "compiled" else "if the environment's"
    assert again.manifest["resume"].startswith(f"bit for bit, {promise}")


def test_a_longer_run_is_the_shorter_one_first(tmp_path):
    long = train_config(configure("grid-world", "dqn", overrides=TWO), tmp_path / "long")
    short = configure("grid-world", "dqn", overrides=TWO | {"steps": 600})
    train_config(short, tmp_path / "short")
    grown = resume(tmp_path / "short", steps=1_000)
    assert (
        digest(grown)["checkpoints/0000001000.safetensors"]
        == (digest(long)["checkpoints/0000001000.safetensors"])
    )
    assert grown.config.steps == 1_000
    with pytest.warns(Notice, match="is finished"):
        resume(tmp_path / "short")
    with pytest.raises(UmdqnError, match="steps = 500 is not allowed: at least 1000"):
        resume(tmp_path / "short", steps=500)


_TRAIN = """
import sys
from umdqn.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_run_that_is_killed_goes_on(tmp_path):
    """Kill -9 at random moments, also inside of a checkpoint write."""
    fields = SMALL | {"steps": 15_000}
    config = configure("grid-world", "dqn", overrides=fields)
    whole = train_config(config, tmp_path / "whole")
    path = tmp_path / "killed"
    random = np.random.default_rng(0)
    command = ["train", "grid-world", "dqn", "--out", str(path), *options(fields)]
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-c", _TRAIN, *command])
        seen = len(list(path.glob("checkpoints/*.json")))
        while process.poll() is None and len(list(path.glob("checkpoints/*.json"))) < seen + 3:
            time.sleep(0.02)
        time.sleep(random.uniform(0, 0.5))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        command = ["train", "--resume", str(path)]
    assert load(path).step < 15_000
    again = resume(path)
    assert digest(again) == digest(whole)
    assert not [p for p in path.rglob("*") if p.name.startswith(".")]


def test_a_checkpoint_costs_the_same_however_long_the_run_is(tmp_path):
    fields = SMALL | {"steps": 3_000, "replay.capacity": 2_000}
    run = train_config(configure("grid-world", "dqn", overrides=fields), tmp_path / "run")
    pieces = sorted((run.path / "replay").iterdir())
    sizes = {path.stat().st_size for path in pieces}
    # 200 rows each, whatever the memory holds, and no more of them than it needs.
    assert max(sizes) - min(sizes) < 100
    assert len(pieces) <= 2_000 // 200 + 2
    index = json.loads((run.path / "checkpoints/0000003000.json").read_text())
    assert index["entered"] == {"0": [3_000]}
