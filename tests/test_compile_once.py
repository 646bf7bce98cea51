"""Programs compile once per configuration, and old ones are let go."""

import gc
import os
import subprocess
import sys
import weakref

import jax
import pytest

import umdqn
from umdqn.loops.compilation import KEPT, kept_programs

COMPILED = "/jax/core/compile/backend_compile_duration"
FIELDS = {
    "steps": 200,
    "replay.warmup": 100,
    "replay.capacity": 300,
    "evaluation.episodes": 2,
    "torso.widths": (16,),
}


@pytest.mark.parametrize("loop", ["compiled", "host"])
def test_equal_configurations_compile_once(loop, tmp_path):
    compiled = []

    def count(event, duration, **_):
        compiled.extend([event] * (event == COMPILED))

    umdqn.train("grid-world", "dqn", out=tmp_path / "first", loop=loop, **FIELDS)
    jax.monitoring.register_event_duration_secs_listener(count)
    try:
        umdqn.train("grid-world", "dqn", out=tmp_path / "second", loop=loop, seed=5, **FIELDS)
        assert not compiled
        # The count counts: another width is another program.
        other = FIELDS | {"torso.widths": (17,)}
        umdqn.train("grid-world", "dqn", out=tmp_path / "third", loop=loop, **other)
        assert compiled
    finally:
        jax.monitoring.unregister_event_duration_listener(count)


def test_only_the_latest_programs_are_kept():
    class Program:
        """Stands for something large."""

    @kept_programs
    def make(number):
        return Program()

    made = [weakref.ref(make(number)) for number in range(KEPT + 3)]
    gc.collect()
    assert [one() is not None for one in made] == [False] * 3 + [True] * KEPT
    assert make(KEPT) is made[KEPT]()


TRAININGS = """
import resource, shutil, sys, tempfile
from pathlib import Path
import umdqn
different, fields = sys.argv[1] == "different", {fields}
folder = Path(tempfile.mkdtemp())

def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6

def train(number):
    wide = fields | {{"torso.widths": (16 + number * different,)}}
    umdqn.train("grid-world", "umdqn-c", out=folder / str(number), **wide)
    shutil.rmtree(folder / str(number))

train(0)
before = resident()
for number in range(1, 101):
    train(number)
print(before, resident())
"""


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux")
@pytest.mark.parametrize("kind", ["same", "different"])
def test_a_hundred_trainings_stay_small(kind):
    """Megabytes of a process after 100 more trainings: at most 200 added, or below 2 GB in all."""
    code = TRAININGS.format(fields=FIELDS)
    done = subprocess.run(
        [sys.executable, "-c", code, kind], capture_output=True, text=True, check=True
    )
    before, after = map(float, done.stdout.split())
    assert after - before < 200 if kind == "same" else after < 2_000, (before, after)
