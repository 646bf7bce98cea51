"""What a fresh process imports, which devices and threads it uses, and what its help says."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from umdqn.agents.algorithms import ALGORITHMS
from umdqn.loops.machine import available_cores
from umdqn.runs.build import trains_on_one_core
from umdqn.runs.configure import configure

HEAVY = {"jax", "matplotlib", "gymnasium", "optax", "equinox", "numpy"}
SHORT = {
    "seeds": 2,
    "steps": 1_200,
    "chunk": 100,
    "replay.warmup": 200,
    "replay.capacity": 500,
    "evaluation.every": 1_200,
    "evaluation.episodes": 2,
    "torso.widths": 16,
    "representation.hidden": 8,
    "metric.points": 8,
}
# Records the device of every seed's state, the threads that run chunks, and how many do at once.
SPY = """
import json, sys, threading
import umdqn.loops.compiled_training as module
seen = {"devices": set(), "threads": set(), "most": 0}
both, running, usual = threading.Barrier(2), 0, module._programs

def watched(loop, batched):
    programs = usual(loop, batched)
    def chunk(state, *rest):
        seen["devices"] |= {str(device) for device in state.key.devices()}
        seen["threads"].add(threading.get_ident())
        # Passes only if another thread is inside of a chunk now.
        both.wait(timeout=60)
        seen["most"] = 2
        return programs.chunk(state, *rest)
    return programs._replace(chunk=chunk)

module._programs = watched
"""
TELL = """
print(json.dumps({name: len(v) if isinstance(v, set) else v for name, v in seen.items()}))
"""


def python(code: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_after(code: str, cwd: Path) -> set[str]:
    tell = "\nimport sys\nprint('\\n' + ' '.join({name.split('.')[0] for name in sys.modules}))"
    return set(python(code + tell, cwd).splitlines()[-1].split())


def called(arguments: list[str]) -> str:
    return f"""
from umdqn.cli.main import main
try:
    main({arguments})
except SystemExit:
    pass
"""


def test_importing_the_package_imports_nothing_heavy(tmp_path: Path) -> None:
    assert not loaded_after("import umdqn", tmp_path) & HEAVY


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["train", "--stepps", "1"]])
def test_help_and_mistakes_import_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    assert not loaded_after(called(arguments), tmp_path) & (HEAVY - {"numpy"})


@pytest.mark.skipif(available_cores() < 2, reason="needs two cores")
def test_two_seeds_of_the_command_line_run_on_two_devices(tmp_path: Path) -> None:
    fields = [text for name, value in SHORT.items() for text in (f"--{name}", str(value))]
    arguments = ["train", "grid-world", "umdqn-c", "--out", str(tmp_path / "run"), *fields]
    found = json.loads(python(SPY + called(arguments) + TELL, tmp_path).splitlines()[-1])
    assert found == {"devices": 2, "threads": 2, "most": 2}


@pytest.mark.skipif(available_cores() < 2, reason="needs two cores")
@pytest.mark.parametrize(
    ("before", "devices"), [("", 2), ("import jax; jax.numpy.zeros(1) + 1\n", 1)]
)
def test_two_seeds_in_python_run_at_once(before: str, devices: int, tmp_path: Path) -> None:
    call = f"import umdqn\numdqn.train(out={str(tmp_path / 'run')!r}, **{SHORT})\n"
    found = json.loads(python(before + SPY + call + TELL, tmp_path).splitlines()[-1])
    assert found == {"devices": devices, "threads": 2, "most": 2}


def test_every_field_in_help_has_a_text_a_default_and_a_range(tmp_path: Path) -> None:
    section = python(called(["train", "--help"]), tmp_path).split("configuration:", 1)[1]
    # An entry begins with its option; the lines below it are indented further.
    found = re.findall(r"^  --([a-z_.]+)(?:, --[a-z-]+)* (.*(?:\n {6}.*)*)", section, re.MULTILINE)
    entries = {name: " ".join(entry.split()) for name, entry in found}
    assert {"steps", "metric.kappa", "replay.capacity", "discount"} <= entries.keys()
    for name, entry in entries.items():
        metavar, *words = entry.split()
        assert len(words) > 3, name
        if metavar in ("INT", "FLOAT", "N,N,..."):
            assert re.search(r"\((.*; )?(one or more|at least|from|above) ", entry), name
    without = {name for name, entry in entries.items() if "default" not in entry}
    # The algorithm chooses the first two; two are objects, given in Python; two lists are empty.
    chosen = {"representation", "metric"}
    assert without <= chosen | {"torso.make", "optimiser.transformation", "env_kwargs", "wrappers"}


def test_small_networks_train_on_one_core_and_large_operations_on_all():
    """As `make bench` measured: 64 cosines, pairs of particles, sums of 200 shares."""
    shared = {"nc-qr-dqn", "iqn", "fqf", "mmdqn"}
    for agent in ALGORITHMS:
        assert trains_on_one_core(configure("grid-world", agent)) == (agent not in shared)
    assert not trains_on_one_core(configure("grid-world", "dqn", overrides={"seeds": 2}))
    # The host loop plays while it learns.
    assert not trains_on_one_core(configure("Acrobot-v1", "dqn", overrides={"loop": "host"}))
