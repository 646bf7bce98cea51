"""The law of a policy that is given: against exact laws, in both loops, and with bad policies."""

import shutil

import gymnasium
import numpy as np
import pytest

import umdqn
from example_parts import RoundRobin
from umdqn.cli.main import main
from umdqn.errors import UmdqnError
from umdqn.runs.build import build_agent
from umdqn.runs.configure import configure
from umdqn.runs.files import read_sealed, write_sealed
from umdqn.runs.manifests import read_manifest
from umdqn.runs.policy_law import configure_law

# Action 0 walks on for 1, action 1 ends for a gamble of mean 0.5. Greedy: walk; the policy: gamble
# in the last state. Returns are sums of at most three rewards.
WALK, GAMBLE = 0, 1
MDP = umdqn.FiniteMdp(
    probability=np.full((3, 2, 2), 0.5),
    next_state=np.tile(np.array([1, 2, 2])[:, None, None], (1, 2, 2)),
    reward=np.tile(np.array([[[1.0, 1.0], [-1.0, 2.0]]]), (3, 1, 1)),
    reward_std=0.3,
    terminated=np.array([[[False] * 2, [True] * 2]] * 2 + [[[True] * 2, [True] * 2]]),
    start=np.array([1.0, 0.0, 0.0]),
    discount=0.9,
    time_limit=20,
    name="walk-or-gamble",
)
TABLE = [WALK, WALK, GAMBLE]
SHORT = {"replay.warmup": 200, "evaluation.every": 500, "evaluation.episodes": 5, "chunk": 500}


def gambler(state: int) -> int:
    return TABLE[state]


class Predicts:
    """As Stable-Baselines3's models answer."""

    def __init__(self, function):
        self.function, self.deterministic = function, set()

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        self.deterministic.add(deterministic)
        return np.asarray(self.function(observation)), None


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    out = tmp_path_factory.mktemp("law") / "run"
    coarse = {"representation.intervals": 50, "metric.points": 50, "torso.widths": (32,)}
    return umdqn.learn_law(gambler, MDP, "umdqn-c", steps=20_000, explore=0.2, out=out, **coarse)


def test_laws_are_the_exact_ones_of_the_policy(learned):
    """W1 of the policy's law and of every other first action.

    Laws have standard deviations of about 1.5. A greedy target would put the mean of state 0 at
    1 + 0.9 + 0.81 = 2.71 instead of 1 + 0.9 + 0.81 * 0.5 = 2.305, so that 0.2 tells them apart.
    """
    exact = umdqn.exact_laws(MDP, TABLE)
    taus = (np.arange(100) + 0.5) / 100
    truth = exact.quantile(taus)
    assert exact.mean[0, WALK] == pytest.approx(2.305, abs=1e-6)
    found = np.asarray(learned.laws(MDP.observations).quantile(taus))
    assert np.abs(found - truth).mean(axis=-1).max() < 0.2
    followed = np.asarray(learned.law(MDP.observations).quantile(taus))
    np.testing.assert_allclose(followed, found[np.arange(3), TABLE], atol=1e-4)
    single = learned.law(MDP.observations[0])
    assert single.shape == ()
    assert float(single.mean) == pytest.approx(2.305, abs=0.2)


def test_evaluation_and_calibration_play_the_policy(learned):
    """An episode walks twice and gambles: 1 + 1 + 0.5 on average, deviation 1.5."""
    returns = learned.evaluate(400)[0].undiscounted
    assert abs(returns.mean() - 2.5) < 5 * 1.6 / 20
    report = learned.calibration(400)
    # Three steps per episode; the greedy policy would never gamble, and its returns hardly differ.
    assert report["returns"] == 1_200
    assert report["realised_std"] > 1.0
    start = learned.at_start(4)
    assert start["mean"] == pytest.approx(2.305, abs=0.2)
    assert start["worst_tenth"] < start["quantile_05"] + 0.5 < start["median"]


def test_a_law_is_loaded_and_follows_its_policy(learned):
    again = umdqn.load_law(learned.path)
    seen = MDP.observations
    np.testing.assert_array_equal(again.law(seen).mean, learned.law(seen).mean)
    assert again.run.predict(seen)[0].tolist() == TABLE
    nested = umdqn.learn_law(
        learned.run, MDP, steps=200, out=learned.path.parent / "nested", **SHORT
    )
    assert nested.run.predict(seen)[0].tolist() == TABLE


class Cut(gymnasium.Env):
    """Pays the action and never ends by itself; the policy must act where it is cut."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2, start=1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.ones(1, np.float32), float(action), False, False, {}


def cut_env():
    return gymnasium.wrappers.TimeLimit(Cut(), 3)


def test_python_policies_run_in_the_host_loop(tmp_path):
    """The policy always takes action 1, the worse one, which is number 0 of the agent."""
    policy = Predicts(lambda seen: 1)
    result = umdqn.learn_law(
        policy, cut_env, steps=600, discount=0.5, out=tmp_path / "cut", **SHORT
    )
    assert policy.deterministic == {True}
    assert set(np.asarray(result.evaluate(3)[0].undiscounted).tolist()) == {3.0}
    assert result.run.predict([1.0])[0] == 1
    assert result.calibration(2)["realised_mean"] > 0


BAD = {
    "too large": (lambda seen: 3, "returned 3: an action must be a whole number from 1 to 2"),
    "negative": (lambda seen: -1, "returned -1"),
    "fraction": (lambda seen: 1.5, "returned 1.5"),
    "nan": (lambda seen: float("nan"), "returned nan"),
    "nothing": (lambda seen: None, "returned None"),
    "shape": (lambda seen: np.array([1, 1]), "of shape (2,)"),
    "raises": (lambda seen: 1 / 0, "raised ZeroDivisionError: division by zero"),
    "no pair": (type("P", (), {"predict": lambda self, o, deterministic: 1})(), "not a pair"),
    "neither": (object(), "must be a function from an observation to an action, or have predict"),
    "class": (Predicts, "is a class: pass an instance"),
    "no run": ("nowhere/run", "there is no such directory"),
    "no module": ("no_module_here:policy", "cannot import no_module_here"),
    "table": ([0, 1], "one action per state, of a finite MDP only"),
}


@pytest.mark.parametrize(("policy", "message"), BAD.values(), ids=BAD)
def test_bad_policies_get_one_line(policy, message, tmp_path):
    with pytest.raises(UmdqnError) as error:
        umdqn.learn_law(policy, cut_env, steps=300, out=tmp_path / "bad", **SHORT)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("explore", [-0.1, 1.1, float("nan")])
def test_explore_is_a_probability(explore):
    with pytest.raises(UmdqnError, match=r"explore = .* is not allowed: from 0 to 1"):
        umdqn.learn_law(gambler, MDP, explore=explore)


def test_runs_of_other_environments_are_refused(small_run):
    with pytest.raises(UmdqnError, match="was trained on grid-world, whose observation is"):
        umdqn.learn_law(small_run, MDP, steps=300)


def test_policies_that_follow_each_other_are_refused(small_run, tmp_path):
    for name, other in (("first", "second"), ("second", "first")):
        shutil.copytree(small_run.path, tmp_path / name)
        file = tmp_path / name / "manifest.json"
        manifest = read_sealed(file)
        manifest["config"]["policy"] = f"{tmp_path / other}@3000"
        write_sealed(file, manifest)
    config, spec, _ = read_manifest(tmp_path / "first")
    with pytest.raises(UmdqnError, match=r"follow each other in a circle: .*second, .*first"):
        build_agent(config)
    # Its laws can still be read.
    assert build_agent(config, spec).policy is not None


def test_the_command_prints_law_and_verdict(small_run, tmp_path, capsys):
    short = [word for name, value in SHORT.items() for word in (f"--{name}", str(value))]
    out = tmp_path / "law"
    arguments = [str(small_run.path), "grid-world", "--steps", "600", "--episodes", "20"]
    assert main(["law-of", *arguments, "--out", str(out), *short]) == 0
    printed = capsys.readouterr().out
    assert "mean of the worst tenth" in printed
    assert "verdict: " in printed
    config = umdqn.load(out).config
    assert config.policy == f"{small_run.path.resolve()}@3000"
    assert (config.exploration.start, config.exploration.end) == (0.1, 0.1)
    assert main(["law-of", "nowhere", "grid-world"]) == 1
    assert "there is no such directory" in capsys.readouterr().err


def test_models_of_stable_baselines3(tmp_path):
    sb3 = pytest.importorskip("stable_baselines3")
    model = sb3.DQN("MlpPolicy", gymnasium.make("CartPole-v1"), seed=0)
    result = umdqn.learn_law(model, "CartPole-v1", steps=400, out=tmp_path / "sb3", **SHORT)
    seen = np.array([0.0, 0.1, 0.02, -0.1], np.float32)
    assert result.run.predict(seen)[0] == model.predict(seen, deterministic=True)[0]


def test_a_policy_that_is_followed_has_settings_of_its_own():
    followed, greedy = configure_law(TABLE, MDP), configure("random-walk", "umdqn-c")
    assert (followed.double, greedy.double) == (False, True)
    assert followed.replay.n_step < greedy.replay.n_step
    assert followed.target.rate > greedy.target.rate
    assert configure_law(TABLE, MDP, overrides={"replay.n_step": 3}).replay.n_step == 3


@pytest.mark.parametrize("rule", [RoundRobin(period=3), "example_parts:RoundRobin"])
def test_another_exploration_rule_takes_the_place_of_explore(rule):
    config = configure_law(TABLE, MDP, overrides={"exploration": rule})
    assert isinstance(config.exploration, RoundRobin)
    assert configure_law(TABLE, MDP, explore=0.3).exploration.end == 0.3
