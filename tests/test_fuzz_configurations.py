"""Configurations drawn at random: each trains, or is refused in one line, within bounds."""

from pathlib import Path

import numpy as np
import pytest

from umdqn.agents.algorithms import ALGORITHMS
from umdqn.errors import UmdqnError
from umdqn.loops.machine import peak_memory
from umdqn.runs.configure import configure
from umdqn.runs.fields import leaves, override
from umdqn.runs.kinds import KINDS
from umdqn.runs.start import train_config
from witness import SMALL

pytestmark = pytest.mark.filterwarnings("ignore::umdqn.errors.Notice")

ENVS = ("grid-world", "FrozenLake-v1", "CartPole-v1")
# Small, so that a program takes seconds; where an algorithm lacks a field, it is left out.
FIELDS = SMALL | {"steps": 60, "replay.warmup": 20, "replay.batch_size": 4, "chunk": 25}
FIELDS |= {"evaluation.every": 30, "evaluation.episodes": 2, "checkpoint_every": 40}
FEW = {
    "representation.hidden": (8,),
    "representation.intervals": 8,
    "representation.quantiles": 8,
    "representation.atoms": 8,
    "representation.embedding": 8,
    "metric.points": 8,
}
# Sizes are small, or so large that they are refused: none may fill the machine.
WHOLE = (1, 2, 3, 5, 12, 50, 0, -1, 2**31 - 1, 2**31, 10**12, 10**400)
REAL = (0.0, 1e-30, 1e-6, 0.01, 0.5, 0.999, 1.0, 3.0, 1e6, 1e30, -1.0, 1e300, float("nan"))
TEXT = ("", "x", "nan", "\x1b[2J", "a:b", "None", "1e3", "\ud800", "[" * 900)
ONCE = ("env", "agent", "preset", "env_kwargs", "wrappers", "policy")


def any_of(random, choices):
    return choices[int(random.integers(len(choices)))]


def value_for(random, name, value):
    """A value of about the right kind, or nonsense."""
    if random.random() < 0.05:
        return any_of(random, TEXT)
    if name in KINDS:
        return any_of(random, tuple(KINDS[name]))
    if isinstance(value, bool):
        return bool(random.integers(2))
    if isinstance(value, int):
        return any_of(random, WHOLE)
    if isinstance(value, float):
        return any_of(random, REAL)
    if isinstance(value, tuple):
        return tuple(any_of(random, WHOLE) for _ in range(int(random.integers(1, 4))))
    return any_of(random, (*TEXT, "auto", "compiled", "host", "constant", "cosine"))


def draw(random):
    """A configuration with up to four fields changed, or None if it is refused."""
    env, agent = any_of(random, ENVS), any_of(random, tuple(ALGORITHMS))
    base = configure(env, agent, overrides=FIELDS)
    known = {name: value for name, _, value in leaves(base) if name not in ONCE}
    few = {name: value for name, value in FEW.items() if name in known}
    few |= {name: 8 for name in few if isinstance(known[name], int)}
    base = override(base, few)
    names = random.choice(sorted(known), int(random.integers(0, 5)), replace=False)
    try:
        return override(base, {str(n): value_for(random, n, known[n]) for n in names})
    except UmdqnError as error:
        message = str(error)
    assert is_one_line(message)
    return None


def is_one_line(message):
    return message.isprintable() and len(message) < 1_500


def variants(random, config):
    """The same programs in other runs."""
    yield config
    for number in range(12):
        fields = {
            "steps": int(random.integers(1, 70)),
            "seeds": int(random.integers(1, 3)),
            "seed": any_of(random, (0, 7, 2**31, 2**32 - 2)),
            "chunk": any_of(random, (1, 7, 1_000)),
            "evaluation.every": any_of(random, (1_000, 13)),
            "checkpoint_every": any_of(random, (1_000, 9)),
            "checkpoint_keep": any_of(random, (1, 3)),
        }
        # Schedules of the optimiser depend on the number of steps, and so do their programs.
        if config.optimiser.depends_on_length:
            fields.pop("steps")
        yield override(config, {n: v for i, (n, v) in enumerate(fields.items()) if i != number % 7})


def trains(config, path):
    """Whether a configuration trains to its end; otherwise it says why in one line."""
    try:
        run = train_config(config, path)
    except UmdqnError as error:
        message = str(error)
    else:
        assert (run.status, run.step) == ("finished", config.steps)
        return True
    assert is_one_line(message)
    return False


def assault(random, attack, folder, programs, total):
    """Train so many programs in several runs each; draw `total` configurations at least."""
    trained = tried = 0
    while programs > 0 or tried < total:
        with attack.trial():
            config = draw(random)
        tried += 1
        if config is None or programs == 0:
            continue
        for variant in variants(random, config):
            with attack.trial():
                went = trains(variant, folder / str(tried))
            tried, trained = tried + 1, trained + went
            if not went:
                break
        else:
            programs -= 1
    return trained, tried


@pytest.fixture
def little_memory():
    """At most 2 GB, counted from here on where the system can."""
    counter = Path("/proc/self/clear_refs")
    try:
        counter.write_text("5")
    except OSError:
        pytest.skip("the system cannot count memory anew")
    yield
    assert peak_memory() < 2e9


@pytest.mark.slow
def test_some_configurations(tmp_path, attack, little_memory):
    random = np.random.default_rng(1)
    trained, _ = assault(random, attack("configurations"), tmp_path, 1, 150)
    assert trained >= 13


@pytest.mark.torture
def test_a_thousand_configurations(tmp_path, attack, little_memory):
    random = np.random.default_rng(0)
    trained, tried = assault(random, attack("configurations"), tmp_path, 45, 1_000)
    assert trained >= max(500, tried // 2)
