"""Long trainings: counters of 32 bits that start close to their edge, and memory that is flat."""

import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from umdqn.errors import InvalidField, UmdqnError
from umdqn.loops.snapshot import Restored
from umdqn.runs.build import build_training
from umdqn.runs.configure import configure
from witness import SMALL

MOST = 2**31 - 1
# A multiple of the memory's 300 rows, so that rows keep their places.
SHIFT = 2**31 - 2**31 % 300 - 600
FIELDS = SMALL | {"steps": MOST, "update_every": 4, "target": "periodic", "target.every": 10}


def moved(snapshot, steps, updates):
    """A snapshot as if so many steps had come before it, with a count of updates."""
    copies = len(snapshot.entered)
    rest = dict(snapshot.rest)
    if "counts" in rest:
        rest["counts"] = rest["counts"] + steps
    else:
        rest["step"] = np.asarray(rest["step"] + steps)
    entered = [count + steps // copies for count in snapshot.entered]
    first = [max(n - room, 0) for n, room in zip(snapshot.entered, snapshot.room, strict=True)]
    rows = snapshot.rows(first, snapshot.entered)
    firsts = {f"{i}/first": np.array(n + steps // copies) for i, n in enumerate(first)}
    agent = snapshot.agent._replace(updates=jnp.int32(updates))
    return Restored(agent, rest, entered, [rows | firsts])


@pytest.mark.parametrize("loop", ["compiled", "host"])
def test_training_goes_on_to_the_last_step(loop, attack):
    more = {"loop": "host", "num_envs": 2} if loop == "host" else {}
    steps = MOST - 1 if loop == "host" else MOST
    config = configure("grid-world", "dqn", overrides=FIELDS | more | {"steps": steps})
    training = build_training(config)
    training.advance(200)
    # Of the steps from here to the last one, those that are multiples of 4 update.
    here = SHIFT + 200
    updates = steps // 4 - here // 4
    restored = moved(training.snapshots()[0], SHIFT, MOST - updates)
    training.restore([restored], "here")
    # A loop that waits for a step beyond the last one would never end.
    with attack("the last of 2^31 steps").trial():
        (progress,) = training.advance(steps - here)
    assert int(progress.updates) == updates
    assert int(progress.first_bad_step) == -1
    assert np.isfinite(progress.loss)
    (snapshot,) = training.snapshots()
    assert int(snapshot.agent.updates) == MOST
    assert sum(snapshot.entered) == steps
    # The last state is one that can be restored.
    training.restore([moved(snapshot, 0, MOST)], "here")
    training.close()


def test_counts_beyond_are_refused():
    config = configure("grid-world", "dqn", overrides=FIELDS)
    training = build_training(config)
    snapshot = training.snapshots()[0]
    for wrong in (
        snapshot._replace(rest=snapshot.rest | {"step": np.array(2**31)}),
        snapshot._replace(entered=[2**31]),
    ):
        restored = Restored(wrong.agent, wrong.rest, wrong.entered, [])
        with pytest.raises(UmdqnError, match="a count is out of range"):
            training.restore([restored], "here")
    training.close()
    with pytest.raises(InvalidField, match=r"steps = 2147483648 .*below"):
        configure("grid-world", "dqn", overrides={"steps": 2**31})
    # Copies that step together may go past the last step.
    hosted = {"loop": "host", "num_envs": 2, "steps": MOST}
    with pytest.raises(InvalidField, match=r"steps = 2147483647 .*at most 2,147,483,646"):
        configure("grid-world", "dqn", overrides=hosted)


FLAT = """
import resource, sys
from pathlib import Path
import umdqn
from umdqn.runs.configure import configure
from umdqn.runs.start import train_config

class Watch(umdqn.Callback):
    def on_chunk(self, report):
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        print(report.step, pages * resource.getpagesize(), flush=True)

env, out, steps, *fields = sys.argv[1:]
fields = dict(field.split("=") for field in fields)
train_config(configure(env, "dqn", overrides=fields | {"steps": steps}), Path(out), [Watch()])
"""
STEPS = 2_000_000
CHEAP = {
    "chunk": 10_000,
    "replay.capacity": 1_000,
    "replay.warmup": 1_000,
    "torso.widths": "8,8",
    "update_every": 64,
    "checkpoint_every": 50_000,
    "evaluation.every": 100_000,
    "evaluation.episodes": 2,
    "evaluation.limit": 20,
}
# In the host loop an episode that never ends: neither memory nor checkpoints may grow with it.
FLAT_CASES = {
    "grid-world": {},
    "test_endless:Endless": {"num_envs": 8},
}


@pytest.mark.torture
@pytest.mark.skipif(sys.platform != "linux", reason="other systems count memory differently")
@pytest.mark.parametrize("env", FLAT_CASES)
def test_memory_is_flat_over_two_million_steps(env, tmp_path, attack):
    fields = [f"{name}={value}" for name, value in (CHEAP | FLAT_CASES[env]).items()]
    command = [sys.executable, "-c", FLAT, env, str(tmp_path / "run"), str(STEPS), *fields]
    with attack("two million steps, memory measured").trial(3_600):
        done = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, timeout=3_600
        )
        assert done.returncode == 0, done.stderr
        sizes = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
        assert sizes[-1][0] == STEPS
        # In the first half the actions of the endless episodes are kept, up to their limit.
        early = max(size for step, size in sizes if step <= STEPS // 2)
        late = max(size for step, size in sizes if step > STEPS // 2)
        # Eight bytes a step, as an action takes, would be 8 MB more.
        assert late - early < 4_000_000
        loops = sorted((tmp_path / "run" / "checkpoints").glob("*.loop.safetensors"))
        assert max(path.stat().st_size for path in loops) < 10_000
