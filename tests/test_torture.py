"""Everything that can be killed, cut or damaged, many times over: `make torture`.

The suite does a little of each; these do all of it and take about an hour on two cores.
"""

import errno
import hashlib
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from damage import mutate
from umdqn.agents.algorithms import ALGORITHMS
from umdqn.errors import UmdqnError
from umdqn.runs.configure import configure
from umdqn.runs.directory import RunDirectory
from umdqn.runs.fields import to_dict
from umdqn.runs.run import load
from umdqn.runs.start import resume, train_config
from umdqn.sweeps.driver import run_sweep
from umdqn.sweeps.plan import sweep_of
from umdqn.sweeps.pools import LocalPool
from umdqn.sweeps.results import collect, write_results
from witness import SMALL, children, digest, options

pytestmark = [pytest.mark.torture, pytest.mark.filterwarnings("ignore::umdqn.errors.Notice")]

KILLS = 10
KILLED = Path(__file__).with_name("killed.py")
# So long that no run ends before it was killed often enough.
OFTEN = SMALL | {"steps": 6_000, "evaluation.every": 300, "checkpoint_every": 100, "chunk": 50}


# In the host loop, agents with even numbers train on LunarLander, the others on MinAtar.
CASES = [("grid-world", agent) for agent in ALGORITHMS] + [
    ("MinAtar/Breakout" if number % 2 else "LunarLander-v3", agent)
    for number, agent in enumerate(ALGORITHMS)
]
# Acting costs more there, and evaluations play until their limit.
HOSTED = OFTEN | {"steps": 5_000, "evaluation.limit": 50, "evaluation.episodes": 2}
HOSTED |= {"evaluation.every": 1_000, "update_every": 4}


@pytest.mark.parametrize(("env", "agent"), CASES)
def test_kill_at_random_moments(env, agent, tmp_path, attack):
    """Half of the kills come while files are written, half anywhere from the first import on."""
    compiled = env == "grid-world"
    fields = OFTEN if compiled else HOSTED
    config = configure(env, agent, overrides=fields)
    whole = train_config(config, tmp_path / "whole")
    path = tmp_path / "killed"
    random = np.random.default_rng(0)
    command = ["train", env, agent, "--out", str(path), *options(fields)]
    counter = attack(f"kill -9 in the {'compiled' if compiled else 'host'} loop")
    for kill in range(KILLS):
        with counter.trial():
            if kill % 2:
                _kill_later(command, path, random)
            else:
                # A checkpoint is some twenty touches; those of the first start make the directory.
                touches = str(random.integers(1, 40))
                process = _start([sys.executable, str(KILLED), touches, *command])
                assert process.wait(timeout=300) == -signal.SIGKILL
            if RunDirectory(path).vacant():
                continue
            assert RunDirectory(path).read_manifest()[2]["status"] == "running"
            command = ["train", "--resume", str(path)]
    end = resume(path)
    assert end.step == config.steps
    assert digest(end) == digest(whole)


def _kill_later(command, path, random):
    """Some time after the start, or soon after a new checkpoint; the run has not ended by then."""
    process = _start([sys.executable, "-m", "umdqn", *command])
    before = len(RunDirectory(path).checkpoints.steps())
    deadline = time.monotonic() + random.uniform(1, 12)
    while time.monotonic() < deadline:
        if len(RunDirectory(path).checkpoints.steps()) > before:
            time.sleep(random.uniform(0, 0.1))
            break
        time.sleep(0.005)
    process.kill()
    assert process.wait() == -signal.SIGKILL


def test_ten_thousand_damaged_files(tmp_path, attack):
    """All are refused within bounds, or read as what was written."""
    import resource

    config = configure("grid-world", "dqn", overrides=OFTEN | {"steps": 400})
    run = train_config(config, tmp_path / "run")
    directory = RunDirectory(run.path)
    like = {0: jax.eval_shape(run.agent.init, jax.random.key(0))}
    step = run.step
    files = [run.path / "manifest.json", run.path / "metrics.jsonl"]
    files += [*(run.path / "checkpoints").glob(f"{step:010d}*"), *(run.path / "replay").iterdir()]
    contents = {path: path.read_bytes() for path in files}
    sound = _content(directory, step, like)
    random = np.random.default_rng(1)
    refused, worst = 0, 0.0
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    counter = attack("damaged files of runs")
    for _ in range(10_000):
        path = files[int(random.integers(len(files)))]
        other = contents[files[int(random.integers(len(files)))]]
        path.write_bytes(mutate(contents[path], random, other))
        start = time.perf_counter()
        with counter.trial():
            try:
                found = _content(directory, step, like)
            except UmdqnError:
                refused += 1
            else:
                assert found == sound
        worst = max(worst, time.perf_counter() - start)
        path.write_bytes(contents[path])
    assert refused > 8_000
    assert worst < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < memory + 300_000


def _content(directory, step, like):
    """Everything that a resume reads, as one checksum."""
    config, _, manifest = directory.read_manifest()
    restored, trainer = directory.checkpoints.restore(step, like)
    said = (to_dict(config), manifest, trainer, directory.read_metrics())
    hashed = hashlib.sha256(repr(said).encode())
    for leaf in jax.tree.leaves((restored[0].agent, restored[0].rest, list(restored[0].rows))):
        hashed.update(np.asarray(leaf).tobytes())
    return hashed.hexdigest()


def test_a_disk_that_is_full_at_each_write(tmp_path, monkeypatch, attack):
    """One training for each write that there is, which fails and all after it; then it goes on."""
    config = configure("grid-world", "dqn", overrides=SMALL | {"steps": 500})
    whole = train_config(config, tmp_path / "whole")
    counter = attack("a disk that is full")
    for allowed in itertools.count():
        path = tmp_path / str(allowed)
        with counter.trial(), monkeypatch.context() as patch:
            patch.setattr(os, "fsync", _full_after(allowed))
            try:
                train_config(config, path)
                break
            except UmdqnError as error:
                message = str(error)
        assert re.fullmatch(rf"cannot write {path}/\S+: No space left on device", message)
        if kept := RunDirectory(path).checkpoints.steps():
            assert load(path).step == kept[-1]
        end = resume(path) if (path / "manifest.json").exists() else train_config(config, path)
        assert digest(end) == digest(whole)
        assert not [p for p in path.rglob("*") if p.name.startswith(".")]
    # Two for the first manifest; those of an index and its manifest for each of four checkpoints.
    assert allowed > 2 + 4 * 4


def _full_after(writes):
    sync, left = os.fsync, iter(range(writes))

    def fsync(descriptor):
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    return fsync


FORTY = {
    "env": "grid-world",
    "agent": ["dqn", "cdqn"],
    "seeds": 10,
    "seeds_per_run": 1,
    "axes": {"discount": [0.5, 0.9]},
    "fields": OFTEN | {"steps": 600},
}


@pytest.fixture(scope="module")
def forty(tmp_path_factory):
    out = tmp_path_factory.mktemp("forty") / "out"
    outcomes = run_sweep(sweep_of(FORTY).jobs(), out, LocalPool)
    assert len(outcomes) == 40
    return [path.read_bytes() for path in write_results(out)]


def _command(out, *more):
    toml = out.parent / "sweep.toml"
    fields = "\n".join(f'"{name}" = {value!r}' for name, value in FORTY["fields"].items())
    toml.write_text(
        'env = "grid-world"\nagent = ["dqn", "cdqn"]\nseeds = 10\nseeds_per_run = 1\n'
        f"[axes]\ndiscount = [0.5, 0.9]\n[fields]\n{fields}\n"
    )
    return [sys.executable, "-m", "umdqn", "sweep", str(toml), "--out", str(out), *more]


def _start(command):
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _until(condition, driver):
    """Wait for something that the driver brings about."""
    deadline = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < deadline
        assert driver.poll() is None
        time.sleep(0.05)


def test_forty_runs_with_ten_kills(forty, tmp_path, attack):
    """Workers and drivers in turn."""
    out = tmp_path / "out"
    counter = attack("kill -9 of workers and drivers of a sweep")
    command = _command(out)
    driver = _start(command)
    for kill in range(10):
        with counter.trial():
            # Three runs after the last kill, so that there is something left to kill at the tenth.
            done = len(list(out.glob("runs/*/metrics.csv")))
            _until(lambda done=done: len(list(out.glob("runs/*/metrics.csv"))) >= done + 3, driver)
            if kill % 2:
                driver.kill()
                assert driver.wait() == -signal.SIGKILL
                driver = _start(command)
            else:
                _until(lambda: children(out), driver)
                os.kill(children(out)[0], signal.SIGKILL)
    assert len(collect(out)) < 40 * 2
    assert driver.wait(timeout=1_200) == 0
    assert [path.read_bytes() for path in write_results(out)] == forty
    assert len(collect(out)) == 40 * 2


def test_forty_runs_on_two_nodes_of_which_one_goes(forty, tmp_path, attack):
    """A real Ray cluster of two nodes on this machine; one is removed in the middle."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    second = cluster.add_node(num_cpus=1)
    try:
        out = tmp_path / "out"
        driver = _start(_command(out, "--ray", cluster.address))
        _until(lambda: len(list(out.glob("runs/*/metrics.csv"))) >= 10, driver)
        with attack("nodes of a Ray cluster removed").trial(1_300):
            cluster.remove_node(second, allow_graceful=False)
            assert driver.wait(timeout=1_200) == 0
    finally:
        cluster.shutdown()
    assert [path.read_bytes() for path in write_results(out)] == forty


def test_fifty_simultaneous_starts(tmp_path, monkeypatch, attack):
    """Fifty trainings of the same name: fifty directories."""
    monkeypatch.chdir(tmp_path)
    command = [sys.executable, "-m", "umdqn", "train", "grid-world", "dqn"]
    command += options(OFTEN | {"steps": 200})
    starts = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for _ in range(50)
    ]
    made, counter = set(), attack("fifty trainings started at once")
    for number, start in enumerate(starts, start=1):
        with counter.trial():
            made.add(start.communicate()[0].strip())
            assert len(made) == number
    checksums = {
        hashlib.sha256((load(path).path / "metrics.jsonl").read_bytes()).hexdigest()
        for path in made
    }
    assert len(checksums) == 1
