"""Episodes that never end: what a checkpoint keeps of them, and how a run resumes."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from safetensors.numpy import load as load_arrays

import umdqn
from umdqn.envs import positions
from umdqn.envs.description import spec_of
from umdqn.envs.hosted import GymnasiumEnvs
from umdqn.errors import Notice
from umdqn.loops import host_arrays, host_training
from umdqn.runs.configure import configure
from umdqn.runs.run import load
from umdqn.runs.start import resume, train_config
from witness import digest

LIMIT = 30
SETTINGS = {
    "steps": 240,
    "replay.warmup": 40,
    "replay.capacity": 100,
    "num_envs": 2,
    "checkpoint_every": 80,
    "chunk": 40,
    "evaluation.every": 240,
    "evaluation.limit": 20,
    "evaluation.episodes": 1,
    "torso.widths": "8,8",
}


class Endless(gymnasium.Env):
    """A walk that a seed begins and actions go on; with a length, episodes end."""

    observation_space = spaces.Box(-1e6, 1e6, (1,), np.float32)
    action_space = spaces.Discrete(2)
    length = None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.taken = self.np_random.uniform(), 0
        return self.seen, {}

    @property
    def seen(self):
        return np.array([self.place], np.float32)

    def step(self, action):
        self.place += 0.01 * (2 * action - 1)
        self.taken += 1
        return self.seen, self.place, self.taken == self.length, False, {}


class Short(Endless):
    length = 15


def short_memory(monkeypatch):
    for module in (positions, host_arrays, host_training):
        monkeypatch.setattr(module, "MOST_REPLAYED", LIMIT)


def test_actions_beyond_the_limit_are_not_kept(monkeypatch):
    short_memory(monkeypatch)
    envs = GymnasiumEnvs(Endless, spec_of(Endless(), "endless"))
    envs.reset(3)
    for _ in range(LIMIT):
        envs.step(np.array([1]))
    whole = envs.position()
    assert len(whole.actions[0]) == LIMIT
    assert host_arrays.position_of(host_arrays.position_arrays(whole)) == whole
    here = envs.step(np.array([1])).following
    # One step more, and nothing is kept; the way back leads to the next episode.
    position = envs.position()
    assert position == (3, (0,), (None,))
    assert host_arrays.position_of(host_arrays.position_arrays(position)) == position
    assert sum(array.nbytes for array in host_arrays.position_arrays(position).values()) < 100
    again = envs.go_to(position)
    assert not np.array_equal(again, here)
    assert envs.position() == (3, (1,), ((),))
    # The actions of the next episode are kept again.
    envs.step(np.array([0]))
    assert envs.position().actions == ((0,),)


def interrupted(env, path):
    """A run that ended at step 160 with an error, resumed to its end; and what was noticed."""

    class Stop(umdqn.Callback):
        def on_chunk(self, report):
            if report.step == 200:
                raise KeyboardInterrupt

    config = configure(f"{__name__}:{env}", "dqn", overrides=SETTINGS)
    with pytest.raises(KeyboardInterrupt):
        train_config(config, path, [Stop()])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = resume(path)
    return run, [str(one.message) for one in caught if issubclass(one.category, Notice)]


def test_a_run_in_an_endless_episode_resumes_with_a_new_one(tmp_path, monkeypatch):
    short_memory(monkeypatch)
    run, notices = interrupted("Endless", tmp_path / "run")
    assert run.step == 240
    assert any(
        f"more than {LIMIT} steps, which is not replayed: a new one begins" in n for n in notices
    )
    assert not any("did not return" in notice for notice in notices)
    sizes = []
    for step in (160, 240):
        name = f"checkpoints/{step:010d}.loop.safetensors"
        data = (run.path / name).read_bytes()
        arrays = load_arrays(data)
        # After step 160 two new episodes began, each now 40 steps old.
        assert arrays["0/lengths"].tolist() == [-1, -1]
        assert arrays["0/episodes"].tolist() == ([0, 0] if step == 160 else [1, 1])
        assert arrays["0/done"].size == 0
        sizes.append(len(data))
    assert sizes[0] == sizes[1]
    assert load(run.path).step == 240


def test_shorter_episodes_resume_bit_for_bit(tmp_path, monkeypatch):
    short_memory(monkeypatch)
    run, notices = interrupted("Short", tmp_path / "run")
    assert not any("episode" in notice for notice in notices)
    config = configure(f"{__name__}:Short", "dqn", overrides=SETTINGS)
    assert digest(run) == digest(train_config(config, tmp_path / "whole"))
