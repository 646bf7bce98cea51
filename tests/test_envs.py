"""Every environment against its referee: Gymnasium, the minatar package, ALE."""

import subprocess
import sys

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import umdqn
from umdqn.cli.main import main
from umdqn.envs.catalogue import CATALOGUE, RESOLVERS, RETIRED, find, named
from umdqn.envs.classic_control import Acrobot, CartPole
from umdqn.envs.entry import Resolver
from umdqn.envs.grid_world import GridWorld
from umdqn.envs.hosted import GymnasiumEnvs, spec_of
from umdqn.errors import Notice, UmdqnError

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
    monkeypatch.setitem(sys.modules, "minatar", None)
    from umdqn.envs.minatar import MinAtar

    with pytest.raises(UmdqnError, match=r"needs an extra: .*\[minatar\]'"):
        MinAtar("Breakout")


def test_the_retired_lander_is_explained():
    with pytest.warns(Notice, match="LunarLander-v2 is LunarLander-v3 now"):
        assert find("LunarLander-v2").spec.name == "LunarLander-v3"
    with pytest.warns(Notice, match="LunarLander-v2 is LunarLander-v3 now"):
        assert umdqn.configure("LunarLander-v2").env == "LunarLander-v3"


COMPILED = [name for name, listing in CATALOGUE.items() if listing.compiled]


def test_compiled_environments_are_equal_by_value():
    makers = (
        GridWorld,
        Acrobot,
        lambda: CartPole("CartPole-v0", 200),
        lambda: CartPole("CartPole-v1", 500),
        lambda: CartPole("CartPole-v1", 400),
    )
    once, again = ([make() for make in makers] for _ in range(2))
    assert once == again
    assert list(map(hash, once)) == list(map(hash, again))
    assert len({*once, *again}) == len(makers)


def test_programs_of_equal_environments_compile_once():
    traces = 0

    def start(env, key):
        nonlocal traces
        traces += 1
        return env.observe(env.reset(key))

    compiled = jax.jit(start, static_argnums=0)
    for _ in range(2):
        compiled(CartPole("CartPole-v1", 500), jax.random.key(0))
    assert traces == 1
    compiled(CartPole("CartPole-v0", 200), jax.random.key(0))
    assert traces == 2


@pytest.mark.parametrize("name", COMPILED)
def test_every_compiled_environment_has_a_copy_in_python(name):
    entry = find(name)
    assert entry.compiled == CATALOGUE[name].compiled
    env = entry.hosted(3)
    spec = entry.spec
    assert env.reset(0).shape == (3, *spec.observation.shape)
    assert env.step(np.zeros(3, np.int64)).reward.shape == (3,)
    env.close()


def test_listed_names_belong_to_one_family():
    """Also the names that Gymnasium knows: their family comes before the registry."""
    assert len(CATALOGUE) == sum(len(resolver.listings) for resolver in RESOLVERS)
    assert {successor for successor, _ in RETIRED.values()} <= set(CATALOGUE)
    assert find("LunarLander-v3").spec.domain == CATALOGUE["LunarLander-v3"].domain
    assert find("MinAtar/Breakout-v1").spec.name == "MinAtar/Breakout"


def test_a_new_family_is_one_resolver(monkeypatch):
    class Ours(Resolver):
        def resolve(self, name):
            return find("grid-world") if name == "ours" else None

        def names(self):
            return ["ours"]

    monkeypatch.setattr("umdqn.envs.catalogue.RESOLVERS", (*RESOLVERS, Ours()))
    assert find("ours").spec.name == "grid-world"
    with pytest.raises(UmdqnError, match="unknown environment 'outs': did you mean 'ours'"):
        find("outs")


def test_objects_and_functions_are_environments_too():
    assert named("CartPole-v1") == "CartPole-v1"
    assert named(Shrinking) == f"{__name__}:Shrinking"
    env = Shrinking()
    assert named(env) == named(env) != named(Shrinking())
    for name in (named(env), named(lambda: Shrinking()), named(Shrinking)):
        spec = find(name).spec
        assert (spec.name, spec.num_actions) == (name, 2)
    find(named(env)).hosted(1).reset(0)
    # Copies were made: the object itself has not started.
    assert env._begun == 0


def test_an_id_that_a_module_registers_is_found(tmp_path, monkeypatch):
    source = "import gymnasium; gymnasium.register('Theirs-v0', 'test_envs:Shrinking')"
    (tmp_path / "their_module.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "test_envs", sys.modules[__name__])
    assert find("their_module:Theirs-v0").spec.num_actions == 2
    gymnasium.registry.pop("Theirs-v0")


def test_optional_packages_are_imported_when_needed():
    code = "import sys, umdqn.envs.catalogue; print({'minatar', 'ale_py'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "set()\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([":Env"], "cannot import"),
        ([".x:Env"], "cannot import"),
        (["CartPole-v1", "--num-envs", "2"], "num_envs = 2 is not allowed"),
        (["MinAtar/Breakout", "--loop", "compiled"], "loop = 'compiled' is not allowed"),
        (["CartPole-v1", "--torso", "nature"], "pictures of three axes"),
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
