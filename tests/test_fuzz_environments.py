"""Environments that break their contract: training, one clear line, or their own exception."""

import re

import numpy as np
import pytest

from broken_envs import KINDS, TRAINS, Broken
from umdqn.envs.catalogue import find, named
from umdqn.envs.hosted import EnvironmentFault
from umdqn.errors import UmdqnError
from umdqn.runs.configure import configure
from umdqn.runs.run import load
from umdqn.runs.start import train_config
from witness import SMALL

LATE = 10_001
FIELDS = SMALL | {
    "update_every": 50,
    "steps": LATE + 49,
    "evaluation.every": 20_000,
    "evaluation.limit": 20,
    "evaluation.episodes": 1,
    "checkpoint_every": 10_000,
    "env_kwargs": "",
}


def outcome(run, expected, message):
    """Check that what a broken environment leads to is what was expected of it."""
    if expected is TRAINS:
        run()
        return
    kind = EnvironmentFault if isinstance(expected, str) else expected
    with pytest.raises(kind) as caught:
        run()
    assert not issubclass(kind, UmdqnError) or type(caught.value) is kind
    if isinstance(expected, str):
        said = str(caught.value)
        assert re.search(message, said)
        assert expected in said
        assert said.isprintable()
        assert len(said) < 700


@pytest.mark.parametrize("at", [1, 3])
def test_sixty_kinds_of_broken_environments(at, attack):
    assert len(KINDS) >= 60
    counter = attack("environments that break their contract")
    for kind in KINDS.values():
        with counter.trial(60):
            env = find(named(lambda kind=kind: Broken(kind.fault, at))).hosted(1)
            env.reset(0)
            for _ in range(at - 1):
                env.step(np.zeros(1, np.int64))
            outcome(
                lambda env=env: env.step(np.zeros(1, np.int64)),
                kind.expected,
                f"environment '.*', step {at} of its copies: ",
            )


def test_first_observations_are_checked_as_well(attack):
    counter = attack("environments that break their contract")
    for name in ("observation: none", "observation: too large", "raises: an error", "answer: none"):
        with counter.trial(60):
            kind = KINDS[name]
            expected = {"answer: none": "reset() must be a pair of observation and info"}.get(
                name, str(kind.expected).replace("raised", "could not reset:")
            )
            # The first environment that is made only tells its spaces.
            env = find(named(lambda kind=kind: Broken(kind.fault, 0))).hosted(1)
            outcome(lambda env=env: env.reset(0), expected, "environment")


@pytest.mark.torture
@pytest.mark.filterwarnings("ignore::umdqn.errors.Notice")
def test_environments_that_break_late_in_an_episode(tmp_path, attack):
    """At step 10,001, in a training: what was learned before is saved."""
    counter = attack("environments that break their contract")
    for number, kind in enumerate(KINDS.values()):
        with counter.trial():
            name = named(lambda kind=kind: Broken(kind.fault, LATE))
            config = configure(name, "dqn", overrides=FIELDS)
            path = tmp_path / str(number)
            outcome(
                lambda config=config, path=path: train_config(config, path),
                kind.expected,
                rf"environment '.*', step {LATE:,} of its copies: ",
            )
            run = load(path)
            assert run.status == ("finished" if kind.expected is TRAINS else "failed")
            assert run.step >= 10_000
