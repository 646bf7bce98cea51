"""Training that cannot fit into memory is refused before it starts, with both numbers."""

import re
import resource
import subprocess
import sys

import jax
import numpy as np
import pytest

import umdqn
from umdqn.cli.main import main
from umdqn.errors import UmdqnError
from umdqn.loops.available import available_memory
from umdqn.loops.footprint import footprint
from umdqn.replay.transition import Batch, Transition
from umdqn.runs.build import build_loop
from umdqn.runs.configure import configure

HUGE = {
    "memory": ["--replay.capacity", "2147483647"],
    "memory in Python": ["--replay.capacity", "2147483647", "--loop", "host"],
    "memories": ["--replay.capacity", "200000000", "--seeds", "50"],
    "network": ["--torso.widths", "100000,100000"],
    "batch": ["--replay.batch_size", "2147483647"],
}
REFUSED = r"training takes about [\d,.]+ GB of memory and [\d,.]+ GB are available \(replay [^:]+\)"


@pytest.mark.parametrize("case", HUGE)
def test_too_much_is_one_line_and_leaves_nothing(case, tmp_path, capsys):
    out = tmp_path / "run"
    assert main(["train", "grid-world", "dqn", "--out", str(out), *HUGE[case]]) == 1
    printed = capsys.readouterr().err
    assert re.fullmatch(rf"umdqn: {REFUSED}: seeds, replay.capacity, .*\n", printed)
    assert not out.exists()


def test_every_way_to_train_refuses(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UmdqnError, match=REFUSED):
        umdqn.train("grid-world", "dqn", replay={"capacity": 2**31 - 1})
    with pytest.raises(UmdqnError, match=REFUSED):
        umdqn.learn_law([0] * 16, "FrozenLake-v1", "dqn", replay={"capacity": 2**31 - 1})
    point = ["--env", "grid-world", "--agent", "dqn", "--out", "sweep"]
    assert main(["sweep", *point, "--replay.capacity", "2147483647"]) == 1
    assert re.fullmatch(rf"umdqn: {REFUSED}: .*\n", capsys.readouterr().err)
    assert list(tmp_path.iterdir()) == []


def test_runs_side_by_side_fit_together(tmp_path, capsys):
    """One alone takes a tenth of the memory; of 64, nine at most fit."""
    row = build_loop(configure("grid-world", "dqn")).memory.storage.row_bytes
    tenth = available_memory() // 10 // row
    point = ["--env", "grid-world", "--agent", "dqn", "--seeds", "64", "--seeds-per-run", "1"]
    some = ["--replay.capacity", str(tenth), "--workers", "64", "--out", str(tmp_path / "sweep")]
    assert main(["sweep", *point, *some]) == 1
    printed = capsys.readouterr().err
    found = re.search(
        r"workers = 64 is not allowed: runs side by .* available: at most (\d+)", printed
    )
    assert found is not None, printed
    assert 5 <= int(found[1]) <= 9
    assert not (tmp_path / "sweep" / "sweep.json").exists()


def test_memories_and_agents_take_what_they_are_said_to(tmp_path):
    fields = {"replay.capacity": 1_000, "replay.batch_size": 500}
    for env, host in (("grid-world", False), ("grid-world", True), ("MinAtar/Breakout", True)):
        if env != "grid-world":
            pytest.importorskip("minatar")
        config = configure(env, "mmdqn", overrides=fields | ({"loop": "host"} if host else {}))
        loop = build_loop(config)
        said = footprint(loop, 3)
        rings = loop.memory.empty(np)
        assert said.replay == 3 * sum(a.nbytes for name, a in rings.items() if name != "head")
        state = jax.jit(loop.agent.init)(jax.random.key(0))
        assert said.agents == 2 * 3 * sum(leaf.nbytes for leaf in jax.tree.leaves(state))


def test_updates_take_about_what_their_program_takes(monkeypatch):
    """XLA's own account of an update, which fuses some of the values that are kept away."""
    loop = build_loop(configure("grid-world", "mmdqn", overrides={"replay.batch_size": 500}))
    state = jax.eval_shape(loop.agent.init, jax.random.key(0))
    row = loop.agent.spec.observation
    seen = jax.ShapeDtypeStruct((500, *row.shape), row.dtype)
    numbers, counts = (jax.ShapeDtypeStruct((500,), kind) for kind in ("float32", "int32"))
    batch = Batch(Transition(seen, counts, numbers, numbers, seen, counts), counts, numbers)
    program = jax.jit(loop.agent.learn).lower(state, batch, jax.random.key(0)).compile()
    taken = program.memory_analysis().temp_size_in_bytes
    # With little memory the estimate is traced, not bounded.
    monkeypatch.setattr("umdqn.loops.footprint.available_memory", lambda: 10**8)
    assert taken / 4 < footprint(loop, 1).updates < 4 * taken


LIMITED = """
import resource
from pathlib import Path
import jax
from umdqn.errors import UmdqnError
from umdqn.loops.available import available_memory
from umdqn.runs.build import build_training
from umdqn.runs.configure import configure
from umdqn.runs.start import train_config

jax.devices()
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 1_900_000_000,) * 2)
print(available_memory())
config = configure("grid-world", "dqn", overrides={"replay.capacity": 100_000_000})
for start in (train_config, build_training):
    try:
        start(config)
    except UmdqnError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count addresses differently")
def test_a_limit_of_the_process_is_named_and_a_failed_start_ends(tmp_path):
    """The second start skips the estimate: the first program fails, and says so."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    available, estimated, failed = done.stdout.splitlines()
    assert 1_000_000_000 < int(available) <= 1_900_000_000
    assert re.match(r"training takes about 3\.\d+ GB of memory and 1\.\d+ GB are avail", estimated)
    assert re.match(r"not enough memory to train: .*Out of memory allocating 2000000000", failed)
    assert list(tmp_path.iterdir()) == []


KB = 1024
MACHINE = {"proc/meminfo": "MemTotal: 16000 kB\nMemFree: 1000 kB\nMemAvailable: 9000 kB\n"}
CASES = {
    "the machine alone": ({}, 9_000 * KB),
    "a container with groups of version 2": (
        {
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/memory.max": "5000000\n",
            "sys/fs/cgroup/memory.current": "3000000\n",
            "sys/fs/cgroup/memory.stat": "anon 1000000\ninactive_file 500000\n",
        },
        2_500_000,
    ),
    "the tightest of nested groups": (
        {
            "proc/self/cgroup": "0::/user/job\n",
            "sys/fs/cgroup/user/memory.max": "4000000\n",
            "sys/fs/cgroup/user/memory.current": "3900000\n",
            "sys/fs/cgroup/user/job/memory.max": "max\n",
            "sys/fs/cgroup/user/job/memory.current": "10000\n",
        },
        100_000,
    ),
    "version 1, where the group is not mounted under its name": (
        {
            "proc/self/cgroup": "9:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n0::/\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "2000000\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "1500000\n",
            "sys/fs/cgroup/memory/memory.stat": "total_inactive_file 250000\n",
        },
        750_000,
    ),
    "version 1 without a limit": (
        {
            "proc/self/cgroup": "4:memory:/\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "1500000\n",
        },
        9_000 * KB,
    ),
    "more used than allowed": (
        {
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/memory.max": "1000\n",
            "sys/fs/cgroup/memory.current": "3000\n",
        },
        0,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_available_is_the_least_that_anything_allows(case, tmp_path):
    files, expected = CASES[case]
    for name, text in (MACHINE | files).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert available_memory(tmp_path) == expected
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY
