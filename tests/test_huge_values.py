"""Numbers beyond what programs can hold are refused in one line, and quickly."""

import dataclasses
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import umdqn
from umdqn.cli import training
from umdqn.cli.main import main
from umdqn.envs.description import spec_of
from umdqn.errors import InvalidField, UmdqnError
from umdqn.runs.configure import configure
from umdqn.runs.fields import leaves
from umdqn.specs import EnvSpec, Observation

# In a process without the shape checks of the tests, which would refuse other types by themselves.
PARTS = """
import dataclasses
from umdqn.errors import InvalidField
from umdqn.runs.kinds import KINDS

for kind, table in KINDS.items():
    for name in table:
        for field in dataclasses.fields(table[name]):
            several = isinstance(field.default, tuple)
            kinds = {type(value) for value in (field.default if several else (field.default,))}
            if not kinds <= {int, float}:
                continue
            for value in (10**400, -10**400, 1e300, float("nan"), float("inf"), "x", None):
                try:
                    table[name](**{field.name: (value,) if several else value})
                    print("taken:", kind, name, field.name, value)
                except InvalidField as error:
                    if error.field != field.name or len(str(error)) > 400:
                        print(error)
                print(end=".")
"""


def test_parts_refuse_what_is_no_number_in_single_precision():
    done = subprocess.run([sys.executable, "-c", PARTS], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout == "." * len(done.stdout)
    assert len(done.stdout) > 40 * 7


def test_configurations_refuse_them_too():
    known = [name for name, _, value in leaves(configure()) if type(value) in (int, float)]
    assert "representation.intervals" in known
    for name in known:
        for value in (10**400, -(10**400), str(10**400), "1" + "0" * 5_000, 1e300):
            with pytest.raises(InvalidField, match=rf"^{name} = "):
                configure(overrides={name: value})
    with pytest.raises(InvalidField, match=r"intervals = 1000000000000 .*65,536"):
        configure(overrides={"representation.intervals": 10**12})
    for name, most in (("evaluation.episodes", "1,000,000"), ("num_envs", "10,000")):
        with pytest.raises(InvalidField, match=rf"^{name} = 2147483647 .*from 1 to {most}"):
            configure(overrides={name: 2**31 - 1})
    with pytest.raises(InvalidField, match="domain = 1000"):
        configure(overrides={"support": "fixed", "domain": (0, 10**400)})


class Wide(gymnasium.Env):
    """Spaces that no table holds."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)
    reward = 0.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), self.reward, False, False, {}


def test_environments_with_too_many_actions_or_states():
    env = Wide()
    env.action_space = spaces.Discrete(2**40)
    message = "action_space.n = 1099511627776 is not allowed: at least 1 and at most 65,536"
    with pytest.raises(UmdqnError, match=f"^environment 'wide': {message}$"):
        spec_of(env, "wide")
    env = Wide()
    env.observation_space = spaces.Discrete(2**40)
    with pytest.raises(
        UmdqnError, match=r"^environment .wide.: observation_space has 1,099,511,627,776"
    ):
        spec_of(env, "wide")


def test_a_reward_that_no_float_holds():
    def make():
        env = Wide()
        env.reward = 10**400
        return env

    settings = {"steps": 20, "replay.warmup": 10, "replay.capacity": 100}
    with pytest.raises(UmdqnError, match="reward must be a finite number, not int 1000"):
        umdqn.train(make, "dqn", **settings)


GOOD = {
    "name": "env",
    "family": "classic-control",
    "num_actions": 2,
    "observation": Observation((4, 8, 8), "uint8", (0.0,), (255.0,), 4),
    "discount": 0.9,
    "domain": None,
    "time_limit": 10,
    "action_names": ("a", "b"),
}


@pytest.mark.parametrize(
    "changed",
    [
        {"num_actions": 0},
        {"num_actions": 3},
        {"discount": 1.5},
        {"time_limit": 0},
        {"reward_clip": -1.0},
    ],
)
def test_specifications_are_checked(changed):
    EnvSpec(**GOOD)
    with pytest.raises(InvalidField):
        EnvSpec(**{**GOOD, **changed})


@pytest.mark.parametrize(
    "changed",
    [
        {"stack": 0},
        {"stack": 3},
        {"dtype": "object"},
        {"dtype": "nonsense"},
        {"dtype": "complex64"},
        {"shape": (4, 0, 8)},
        {"shape": (4, 2**20, 2**20)},
        {"low": (0.0, 1.0)},
        {"high": (float("nan"),)},
    ],
)
def test_observations_are_checked(changed):
    with pytest.raises(InvalidField, match=next(iter(changed))):
        dataclasses.replace(GOOD["observation"], **changed)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "umdqn: out of memory; a smaller replay.capacity,"),
        (
            MemoryError("Unable to allocate\n5 TiB"),
            "umdqn: out of memory: Unable to allocate 5 TiB;",
        ),
        (
            RuntimeError("RESOURCE_EXHAUSTED: 5 TB"),
            "umdqn: out of memory: RESOURCE_EXHAUSTED: 5 TB;",
        ),
    ],
)
def test_running_out_of_memory_says_so(error, message, monkeypatch, capsys):
    def exhausted(config):
        raise error

    monkeypatch.setattr(training, "_choose_cores", exhausted)
    assert main(["train", "grid-world", "dqn"]) == 1
    written = capsys.readouterr().err
    assert written.startswith(message)
    assert written.count("\n") == 1
