"""Every environment against its referee: Gymnasium, the minatar package, ALE."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from umdqn.cli import main
from umdqn.envs import GymnasiumEnvs, find
from umdqn.envs.hosted import spec_of
from umdqn.runs import configure
from umdqn.types import Notice, UmdqnError

CLASSIC = ("CartPole-v0", "CartPole-v1", "Acrobot-v1", "MountainCar-v0")
DRIVEN = {"MountainCar-v0": 1, "Acrobot-v1": 3}


@pytest.mark.parametrize("name", CLASSIC)
def test_compiled_dynamics_keep_step_with_gymnasium(name):
    env, referee = find(name).compiled, gymnasium.make(name).unwrapped
    step, observe = jax.jit(env.step), jax.jit(env.observe)
    random = np.random.default_rng(0)
    referee.reset(seed=0)
    terminals = 0
    for count in range(3_000):
        action = int(random.integers(env.spec.num_actions))
        if name in DRIVEN and count % 10:  # with the speed: energy grows until the goal is reached
            action = 2 if referee.state[DRIVEN[name]] >= 0 else 0
        state = np.array(referee.state, np.float32)
        observation, reward, terminated, _, _ = referee.step(action)
        after, outcome = step(jnp.asarray(state), jnp.int32(action), jax.random.key(0))
        # Acrobot's angles jump by a turn at pi: compare what is observed.
        np.testing.assert_allclose(observe(after), observation, rtol=2e-5, atol=2e-5)
        assert float(outcome.reward) == reward
        assert bool(outcome.terminated) == terminated
        terminals += terminated
        if terminated or count % 500 == 499:
            referee.reset()
    assert terminals > 0


@pytest.mark.parametrize("name", CLASSIC)
def test_compiled_starts_and_limits_are_gymnasiums(name):
    env, referee = find(name).compiled, gymnasium.make(name)
    starts = jax.vmap(lambda key: env.observe(env.reset(key)))(
        jax.random.split(jax.random.key(1), 2_000)
    )
    reference = np.stack([referee.reset(seed=seed)[0] for seed in range(2_000)])
    # Uniform starts: both samples fill the same box, whose ends 2,000 draws come within 1% of.
    width = np.ptp(reference, axis=0) + 1e-6
    np.testing.assert_array_less(np.abs(starts.min(0) - reference.min(0)), 0.01 * width)
    np.testing.assert_array_less(np.abs(starts.max(0) - reference.max(0)), 0.01 * width)
    assert env.spec.time_limit == referee.spec.max_episode_steps
    assert env.spec.num_actions == referee.action_space.n
    assert env.spec.observation.shape == referee.observation_space.shape


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "minatar", None)
    from umdqn.envs.minatar import MinAtar

    with pytest.raises(UmdqnError, match=r"pip install 'umdqn\[minatar\]'"):
        MinAtar("Breakout")


def test_the_retired_lander_is_explained():
    with pytest.warns(Notice, match="LunarLander-v2 is LunarLander-v3 now"):
        assert configure("LunarLander-v2").env == "LunarLander-v3"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([":Env"], "cannot import"),
        ([".x:Env"], "cannot import"),
        (["CartPole-v1", "--num-envs", "2"], "num_envs = 2 is not allowed"),
        (["MinAtar/Breakout", "--loop", "compiled"], "loop = 'compiled' is not allowed"),
        (["CartPole-v1", "--convolutions", "nature"], "pictures of three axes"),
        (["gymnasium.envs.classic_control:CartPoleEnv", "--discount", "abc"], "must be a number"),
        (["gymnasium.envs.classic_control:CartPoleEnv", "--discount", "1"], "from 0 to below 1"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(arguments, message, tmp_path, capsys):
    env, *fields = arguments
    assert main(["train", env, "--out", str(tmp_path / "run"), *fields]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


class Shrinking(gymnasium.Env):
    """Its first episode has nine steps, all others three, whatever the seed."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    _begun = 0

    def reset(self, *, seed=None, options=None):
        self._begun, self._left = self._begun + 1, 9 if self._begun == 0 else 3
        return np.zeros(1, np.float32), {}

    def step(self, action):
        assert self._left > 0, "the episode is over"
        self._left -= 1
        return np.full(1, self._left / 9, np.float32), 1.0, self._left == 0, False, {}


def test_an_episode_that_cannot_be_done_again_is_not_stepped_past_its_end():
    envs = GymnasiumEnvs(Shrinking, spec_of(Shrinking(), "shrinking"))
    envs.reset(0)
    for _ in range(5):
        envs.step(np.zeros(1, np.int64))
    position = envs.position()
    assert len(position.actions[0]) == 5
    # The third of the five ends the episode this time: a new one begins.
    np.testing.assert_array_equal(envs.go_to(position), np.zeros((1, 1)))
    assert envs.position().actions == ((),)
    assert not envs.step(np.zeros(1, np.int64)).terminated.any()
