"""Environments of users: structured observations, arguments, wrappers, normalised inputs."""

import dataclasses
import json
import subprocess
import sys

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

import umdqn
from umdqn.agents.policies import PythonPolicy
from umdqn.envs.catalogue import find, named
from umdqn.envs.hosted import EnvironmentFault, GymnasiumEnvs
from umdqn.envs.observations import Reader, Unexpected, observation_of
from umdqn.envs.setup import Setup
from umdqn.errors import InvalidField, UmdqnError
from umdqn.layouts import decode, encode
from umdqn.networks.normalised import Seen
from umdqn.networks.pieces import split
from umdqn.networks.torsos import Auto
from umdqn.parts.keywords import read_keywords
from umdqn.runs.build import build_agent, environment
from umdqn.runs.configure import configure
from umdqn.runs.fields import from_dict, override, to_dict
from umdqn.runs.start import train_config
from umdqn.specs import EnvSpec, Keywords, Observation
from umdqn.sweeps.plan import Sweep

SMALL = {"steps": 60, "replay.warmup": 20, "evaluation.episodes": 2, "torso.widths": (8,)}

CAMERA = spaces.Box(0, 255, (12, 12, 3), np.uint8)
LEAVES = {
    "box": spaces.Box(-1.0, 2.0, (2, 2), np.float32),
    "doubles": spaces.Box(-1e3, 1e3, (3,), np.float64),
    "whole": spaces.Box(-5, 5, (2,), np.int16),
    "bits": spaces.MultiBinary((2, 2)),
    "state": spaces.Discrete(4, start=-1),
    "dials": spaces.MultiDiscrete([[2, 3], [4, 5]], start=[[0, 1], [2, 3]]),
}


class Lists(gymnasium.Env):
    """Gives members of any space; ends after `length` steps."""

    def __init__(self, space=CAMERA, length=5):
        self.observation_space, self.length = space, length
        self.action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.count = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.count += 1
        seen = self.observation_space.sample()
        return seen, float(action), self.count == self.length, False, {}


class Robot(Lists):
    """A camera beside vectors and choices."""

    def __init__(self, length=5):
        arm = spaces.Tuple((spaces.Discrete(3), spaces.Box(-500, 500, (2,), np.float64)))
        super().__init__(spaces.Dict({"camera": CAMERA, "arm": arm}), length)


def equal(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    return np.array_equal(a, b)


spaces_of_users = st.recursive(
    st.sampled_from([*LEAVES.values(), CAMERA]),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from(["a", "b", "0", "x.y"]), inner, min_size=1, max_size=3).map(
            spaces.Dict
        ),
        st.lists(inner, min_size=1, max_size=3).map(spaces.Tuple),
    ),
    max_leaves=5,
)


@settings(max_examples=60, deadline=None)
@given(spaces_of_users, st.integers(0, 2**31 - 1))
def test_observations_survive_the_way_into_an_array_and_back(space, seed):
    """Eight-byte fractions lose digits beside pictures; samples here are whole or short."""
    observation = observation_of(space, "any")
    space.seed(seed)
    value = space.sample()
    array = Reader(space, observation)(value)
    assert array.shape == observation.shape
    assert array.dtype == observation.dtype
    back = decode(observation, array)
    np.testing.assert_array_equal(Reader(space, observation, False)(_rounded(space, back)), array)
    if observation.slots and isinstance(value, dict | tuple):
        np.testing.assert_array_equal(encode(observation, value), array)
        np.testing.assert_array_equal(encode(observation, [value, value]), [array, array])
    spec = EnvSpec("any", "atari", 2, observation, 0.9, None, None, ("a", "b"))
    assert from_dict(EnvSpec, json.loads(json.dumps(to_dict(spec)))) == spec


def _rounded(space, value):
    """A decoded value in the types of its space."""
    if isinstance(space, spaces.Dict):
        return {key: _rounded(space[key], value[key]) for key in value}
    if isinstance(space, spaces.Tuple):
        return tuple(map(_rounded, space.spaces, value))
    return value if isinstance(space, spaces.Discrete) else np.asarray(value, space.dtype)


def test_choices_become_one_hot_vectors_and_pieces_follow_each_other():
    """Keys of a Dict are sorted: dial (2 of 3 choices), state (1 of 4, from -1), then two numbers.

    0 1 | 0 0 1 is dial (1, 2); the state 1 is the third of -1, 0, 1, 2.
    """
    space = spaces.Dict(
        {
            "dial": spaces.MultiDiscrete([2, 3]),
            "state": LEAVES["state"],
            "z": spaces.Box(-3.0, 8.0, (2,), np.float32),
        }
    )
    observation = observation_of(space, "any")
    value = {"dial": np.array([1, 2]), "state": 1, "z": np.array([0.5, -2], np.float32)}
    expected = [0, 1, 0, 0, 1, 0, 0, 1, 0, 0.5, -2]
    np.testing.assert_array_equal(Reader(space, observation)(value), expected)
    assert observation.dtype == "float32"
    assert (observation.low[0], observation.high[-1]) == (-1.0, 8.0)
    assert str(observation) == "dial (5 numbers) and state (4 numbers) and z (2 numbers)"


def test_pictures_beside_numbers_are_packed_and_unpacked_bit_for_bit():
    env = Robot()
    observation = observation_of(env.observation_space, "robot")
    seen, _ = env.reset(seed=3)
    array = Reader(env.observation_space, observation)(seen)
    # 3 choices of a byte, 2 numbers of four bytes, and the pixels.
    assert array.shape == (3 + 8 + 12 * 12 * 3,)
    choice, numbers, camera = jax.jit(lambda x: split(observation, x))(array)
    np.testing.assert_array_equal(camera, seen["camera"])
    np.testing.assert_array_equal(numbers, seen["arm"][1].astype(np.float32))
    np.testing.assert_array_equal(choice, np.arange(3) == seen["arm"][0])
    torso = Auto((8,)).build(observation, jax.random.key(0))
    alone = Auto((8,)).build(Observation((12, 12, 3), "uint8", (0.0,), (255.0,)), jax.random.key(0))
    assert torso.front.size == 5 + alone.front.size
    base = np.asarray(torso(jnp.asarray(array)))
    changed = array.copy()
    changed[-1] ^= 255
    assert not np.array_equal(base, torso(jnp.asarray(changed)))


@pytest.mark.parametrize(
    ("space", "value", "message"),
    [
        (LEAVES["box"], np.full((2, 2), 2.5, np.float32), "observation[0, 0] must be from -1 to 2"),
        (LEAVES["whole"], np.array([0, 9], np.int16), "observation[1] must be from -5 to 5"),
        (spaces.Box(0, np.inf, (1,)), np.array([-1], np.float32), "observation[0] must be from 0"),
        (LEAVES["state"], 3, "observation must be a member of Discrete(4"),
        (LEAVES["state"], True, "observation must be a member of Discrete(4"),
        (LEAVES["bits"], np.full((2, 2), 2), "observation must be a member of MultiBinary"),
        (LEAVES["dials"], np.zeros((2, 2), int), "observation must be a member of MultiDiscrete"),
        (spaces.Dict(LEAVES), {"box": 1}, "observation must be a dict with 'bits'"),
        (
            spaces.Dict({"a": spaces.Tuple((LEAVES["state"], LEAVES["box"]))}),
            {"a": (0, np.zeros(4, np.float32))},
            "observation['a'][1] must be float32 of shape (2, 2)",
        ),
        (spaces.Tuple((LEAVES["state"],)), (), "observation must be a tuple of more than 0"),
    ],
)
def test_observations_outside_of_their_space_are_named(space, value, message):
    with pytest.raises(Unexpected) as caught:
        Reader(space, observation_of(space, "any"))(value)
    assert message in str(caught.value)


def test_rounding_is_no_fault_and_bounds_can_be_lifted():
    space = LEAVES["box"]
    observation = observation_of(space, "any")
    Reader(space, observation)(np.full((2, 2), np.nextafter(np.float32(2), np.float32(3))))
    Reader(space, observation, bounded=False)(np.full((2, 2), 9, np.float32))


@pytest.mark.parametrize("reward", ["1.5", b"1", None, np.zeros(2), 10**400, complex(1, 1)])
def test_rewards_that_are_no_numbers_are_refused(reward):
    class Bad(Lists):
        def step(self, action):
            return (*super().step(action)[:1], reward, False, False, {})

    env = find(named(Bad)).hosted(1)
    env.reset(0)
    with pytest.raises(EnvironmentFault, match="reward must be a finite number"):
        env.step(np.zeros(1, np.int64))


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (spaces.Text(5), "observation_space must be a Box, Discrete"),
        (spaces.Dict({"a": spaces.Sequence(LEAVES["box"])}), "at 'a'"),
        (spaces.Dict({}), "is empty"),
        (spaces.Discrete(2**40), "1,099,511,627,776 choices"),
        (spaces.MultiDiscrete([90_000, 90_000]), "180,000 choices"),
    ],
)
def test_spaces_that_agents_cannot_read_are_refused_in_one_line(space, message):
    with pytest.raises(UmdqnError) as caught:
        observation_of(space, "theirs")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_too_many_actions_are_refused_before_they_get_names():
    class Endless(Lists):
        def __init__(self):
            super().__init__()
            self.action_space = spaces.Discrete(2**40)

    with pytest.raises(
        UmdqnError, match=r"action_space\.n = 1099511627776 is not allowed: at least 1 and at most"
    ):
        find(named(Endless))


def test_policies_see_what_the_environment_gives():
    env = Robot()
    spec = find(named(Robot)).spec
    seen, _ = env.reset(seed=0)
    shown = []
    policy = PythonPolicy("mine", lambda value: shown.append(value) or 1, spec)
    policy.choose(encode(spec.observation, seen)[None])
    assert equal(shown[0]["camera"], seen["camera"])
    assert shown[0]["arm"][0] == seen["arm"][0]
    np.testing.assert_allclose(shown[0]["arm"][1], seen["arm"][1], rtol=1e-6)


def test_a_run_on_a_dict_learns_reads_dicts_and_resumes_bit_for_bit(tmp_path):
    fields = SMALL | {
        "normalise_observations": True,
        "env_kwargs": {"length": 4},
        "wrappers": ["time-limit:max_episode_steps=3"],
    }
    config = configure(named(Robot), "dqn", overrides=fields)
    whole = train_config(config, tmp_path / "whole")
    assert whole.spec.time_limit == 3
    assert whole.manifest["config"]["env_kwargs"] == {"length": 4}
    assert whole.manifest["config"]["wrappers"] == ["time-limit:max_episode_steps=3"]
    half = override(config, {"steps": 40, "optimiser.schedule": "constant"})
    train_config(half, tmp_path / "half")
    resumed = umdqn.resume(tmp_path / "half", 60)
    straight = train_config(
        override(config, {"optimiser.schedule": "constant"}), tmp_path / "straight"
    )
    jax.tree.map(np.testing.assert_array_equal, resumed.learned[0], straight.learned[0])
    seen, _ = Robot().reset(seed=1)
    array = encode(whole.spec.observation, seen)
    np.testing.assert_array_equal(whole.law(seen).mean, whole.law(array).mean)
    assert whole.law([seen, seen]).mean.shape == (2, 2)
    statistics = whole.learned[0].params.torso.seen
    # Batches of all updates after the warm-up: (60 - 20) / 4 = 10.
    assert config.update_every == 4
    assert float(statistics.total) == 10 * config.replay.batch_size
    assert statistics.mean.shape == (2,)
    with pytest.raises(InvalidField, match="a structure with 'arm"):
        whole.law({"camera": seen["camera"]})


def test_running_statistics_are_those_of_all_observations_together():
    random = np.random.default_rng(0)
    numbers = random.normal([3.0, -200.0], [0.5, 50.0], (10, 32, 2)).astype(np.float32)
    seen = Seen(jnp.float32(0), jnp.zeros(2), jnp.ones(2))
    for batch in numbers:
        seen = seen.after(jnp.asarray(batch))
    flat = numbers.reshape(-1, 2)
    assert float(seen.total) == 320
    np.testing.assert_allclose(seen.mean, flat.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(seen.variance, flat.var(axis=0), rtol=1e-4)


def test_normalised_agents_see_units_and_laws_do_not_change_theirs():
    """Observations in other units give the same laws, once the statistics have followed them."""
    spec = EnvSpec("x", "classic-control", 2, Observation((2,)), 0.9, None, 9, ("a", "b"))
    config = configure("grid-world", "umdqn-c", overrides={"normalise_observations": True})
    agent = build_agent(config, spec)
    learned = agent.fresh(jax.random.key(0))

    def law(factor):
        seen = Seen(
            jnp.float32(9), factor * jnp.array([1.0, 2.0]), factor**2 * jnp.array([4.0, 9.0])
        )
        params = eqx.tree_at(lambda network: network.torso.seen, learned.params, seen)
        return agent.laws(learned._replace(params=params), factor * jnp.array([2.0, -1.0]))

    np.testing.assert_allclose(law(1.0).mean, law(1000.0).mean, rtol=1e-5)
    pictures = dataclasses.replace(spec, observation=observation_of(CAMERA, "x"))
    with pytest.raises(InvalidField, match="normalise_observations = True is not allowed"):
        build_agent(config, pictures).check()


@pytest.mark.parametrize(
    ("written", "values"),
    [
        (["size=5", "name=big", "ratio=0.5", "flag=true", "other=None"], None),
        ('{"size": 5, "name": "big", "ratio": 0.5, "flag": true, "other": null}', None),
        ("size=5 name=big ratio=0.5 flag=True other=null", None),
        ({"size": 5, "name": "big", "ratio": 0.5, "flag": True, "other": None}, None),
        ([], {}),
    ],
)
def test_arguments_are_pairs_or_json(written, values):
    expected = {"size": 5, "name": "big", "ratio": 0.5, "flag": True, "other": None}
    assert read_keywords("env_kwargs", written).values == (expected if values is None else values)


@pytest.mark.parametrize(
    "written", ["size", "=5", ["a b=1"], '{"a": ', "a=NaN", {"a": object()}, 7]
)
def test_arguments_that_are_no_data_are_refused(written):
    with pytest.raises(InvalidField, match="env_kwargs = "):
        read_keywords("env_kwargs", written)


def test_arguments_reach_compiled_tables_and_sweeps_can_vary_one():
    config = configure("FrozenLake-v1", "dqn", overrides={"env_kwargs": {"is_slippery": False}})
    entry = environment(config)
    # Without slipping, every action leads to one state.
    assert entry.compiled.mdp.probability.max(axis=-1).min() == 1
    slippery = environment(configure("FrozenLake-v1", "dqn")).compiled.mdp
    np.testing.assert_allclose(slippery.probability.max(axis=-1).min(), 1 / 3)
    sizes = Sweep(("FrozenLake-v1",), ("dqn",), axes={"env_kwargs.max_episode_steps": (7, 9)})
    points = [job.point["env_kwargs.max_episode_steps"] for job in sizes.jobs()]
    assert points == [7, 9]
    changed = override(config, {"env_kwargs.max_episode_steps": 7})
    assert changed.env_kwargs == Keywords.of({"is_slippery": False, "max_episode_steps": 7})
    assert environment(changed).spec.time_limit == 7
    with pytest.raises(InvalidField, match="make the same FrozenLake-v1 each time"):
        configure("FrozenLake-v1", overrides={"env_kwargs": {"map_name": None}})
    with pytest.raises(UmdqnError, match="unexpected keyword argument 'masss'"):
        configure("CartPole-v1", overrides={"env_kwargs": {"masss": 1}})


@pytest.mark.parametrize(
    ("env", "argument"),
    [("FrozenLake-v1", "is_slippery"), ("CartPole-v1", "sutton_barto_reward")],
)
def test_text_is_no_truth_value(env, argument):
    with pytest.raises(InvalidField, match=f"env_kwargs.{argument} = 'flase' .*: true or false"):
        configure(env, overrides={"env_kwargs": [f"{argument}=flase"]})
    assert configure(env, overrides={"env_kwargs": [f"{argument}=false"]})


def test_wrappers_are_found_by_name_class_and_path():
    class Louder(gymnasium.RewardWrapper):
        def reward(self, reward):
            return 10 * float(reward)

    for given_as in ("clip-reward:max_reward=0.5", Louder):
        config = configure("CartPole-v1", "dqn", overrides={"wrappers": [given_as]})
        entry = environment(config)
        assert entry.compiled is None
        assert entry.spec.time_limit == 500
        env = entry.hosted(1)
        env.reset(0)
        reward = env.step(np.zeros(1, np.int64)).reward[0]
        assert reward == (10 if given_as is Louder else 0.5)
    stacked = configure("CartPole-v1", overrides={"wrappers": "frame-stack:stack_size=4"})
    assert environment(stacked).spec.observation.shape == (4, 4)
    path = "gymnasium.wrappers:TimeLimit:max_episode_steps=9"
    assert (
        environment(configure("CartPole-v1", overrides={"wrappers": [path]})).spec.time_limit == 9
    )


@pytest.mark.parametrize(
    ("wrapper", "message"),
    [
        ("time-limt", "did you mean 'time-limit'?"),
        ("time-limit:steps=4", "cannot be put around"),
        ("normalize-reward", "support 'learned'"),
        ("gymnasium.wrappers:NormalizeObservation", "use normalise_observations"),
        ("resize-observation:shape=[3,3]", "cannot be put around"),
        (7, "names, or functions"),
    ],
)
def test_wrappers_that_cannot_be_used_are_refused_in_one_line(wrapper, message):
    with pytest.raises(UmdqnError) as caught:
        configure("CartPole-v1", overrides={"wrappers": [wrapper]})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_clipped_and_loose_bounds():
    class Wild(Lists):
        def __init__(self):
            super().__init__(spaces.Box(-1.0, 1.0, (1,), np.float32))

        def reset(self, *, seed=None, options=None):
            return np.array([5.0], np.float32), {}

    name = named(Wild)
    with pytest.raises(EnvironmentFault, match="loose-bounds lifts them, clip-observation clips"):
        find(name).hosted(1).reset(0)
    for wrapper, value in (("clip-observation", 1.0), ("loose-bounds", 5.0)):
        assert find(name, Setup(wrappers=(wrapper,))).hosted(1).reset(0).item() == value


def test_vector_environments_give_their_members():
    def make():
        return gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="sync")

    for given_as in (make(), make):
        config = configure(named(given_as), "dqn")
        assert config.num_envs == 3
        env = environment(config).hosted(3)
        assert isinstance(env, GymnasiumEnvs)
        seen = env.reset(0)
        assert seen.shape == (3, 4)
        assert len({row.tobytes() for row in seen}) == 3
    limited = configure(
        named(make), "dqn", overrides={"wrappers": ["time-limit:max_episode_steps=5"]}
    )
    assert environment(limited).spec.time_limit == 5
    native = gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="vector_entry_point")
    with pytest.raises(
        UmdqnError, match="a function that makes a single environment, and num_envs"
    ):
        configure(named(native), "dqn")


def test_runs_find_their_module_where_it_was(tmp_path):
    """A run that is read in another directory tells where the module comes from, and works."""
    (tmp_path / "there").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "there" / "my_walk.py").write_text(
        "from gymnasium.envs.classic_control import CartPoleEnv\n\n\n"
        "class Walk(CartPoleEnv):\n    pass\n"
    )
    small = [f"--{name}={value}" for name, value in (SMALL | {"torso.widths": "8"}).items()]
    limit = ["--wrappers", "time-limit:max_episode_steps=5"]
    command = [sys.executable, "-m", "umdqn"]
    train = [*command, "train", "my_walk:Walk", "dqn", *small, *limit, "--out", "run"]
    subprocess.run(train, cwd=tmp_path / "there", check=True, capture_output=True)
    evaluate = [*command, "evaluate", "../there/run", "--episodes", "2"]
    done = subprocess.run(evaluate, cwd=tmp_path / "elsewhere", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"is imported from {(tmp_path / 'there' / 'my_walk.py').resolve()}" in done.stderr
    assert "5.0000" in done.stdout
