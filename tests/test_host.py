"""The host loop: contracts of environments, memories, and episodes that never mix."""

import dataclasses
from itertools import islice

import gymnasium
import jax
import numpy as np
import optax
import pytest
from gymnasium import spaces

import umdqn
from quick import quick
from umdqn.calibration.forecasts import Judged
from umdqn.calibration.hosted import collect
from umdqn.envs.catalogue import find, named
from umdqn.envs.description import spec_of
from umdqn.envs.hosted import EnvironmentFault, GymnasiumEnvs
from umdqn.errors import Notice, UmdqnError
from umdqn.loops.evaluation import evaluate_hosted
from umdqn.loops.host import HostLoop
from umdqn.loops.host_episodes import play_hosted
from umdqn.loops.host_training import HostTraining
from umdqn.replay.uniform import Uniform
from umdqn.runs import trainer
from umdqn.runs.build import build_agent, build_training, environment
from umdqn.runs.configure import configure
from umdqn.runs.domains import estimated_domain
from umdqn.runs.run import load
from umdqn.runs.start import train_config
from umdqn.specs import Domain

SMALL = {
    "replay.warmup": 100,
    "torso.widths": (16, 16),
    "representation.hidden": (16,),
    "metric.points": 20,
    "update_every": 1,
    # One that falls over the run would make longer runs differ from their first step on.
    "optimiser.schedule": "constant",
}


class Counting(gymnasium.Env):
    """Observes its episode and its step; ends by turns with termination and truncation."""

    length = 7

    def __init__(self, fault=None, at=5):
        self.observation_space = spaces.Box(-10.0, 1e6, (2,), np.float32)
        self.action_space = spaces.Discrete(2, start=3)
        self.fault, self.at = fault, at
        self.episode, self.count, self.total = -1, 0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.count = self.episode + 1, 0
        return self._seen(), {}

    def _seen(self):
        return np.array([self.episode, self.count], np.float32)

    def step(self, action):
        assert action in (3, 4)
        self.count += 1
        self.total += 1
        over = self.count == self.length
        answer = [self._seen(), float(self.count), over and self.episode % 2 == 0, False, {}]
        answer[3] = over and not answer[2]
        if self.fault and self.total == self.at:
            answer = self.fault(answer)
        return tuple(answer)


def changed(index, value):
    def fault(answer):
        answer[index] = value
        return answer

    return fault


def raising(answer):
    raise ValueError("the motor\nis broken")


FAULTS = {
    "shape": (changed(0, np.zeros(3, np.float32)), "observation must be float32 of shape (2,)"),
    "dtype": (changed(0, np.zeros(2)), "not float64 of shape (2,)"),
    "nan": (changed(0, np.array([0, np.nan], np.float32)), "observation must be finite numbers"),
    "list": (changed(0, [0.0, 1.0]), "not list [0.0, 1.0]"),
    "reward": (changed(1, np.inf), "reward must be a finite number, not float inf"),
    "text": (changed(1, "much"), "reward must be a finite number, not str 'much'"),
    "number in text": (changed(1, "1.5"), "reward must be a finite number, not str '1.5'"),
    "outside": (
        changed(0, np.array([0, -11], np.float32)),
        "observation[1] must be from -10 to 1e+06",
    ),
    "flag": (changed(2, "yes"), "terminated must be True or False, not str 'yes'"),
    "raises": (raising, f"raised ValueError: the motor is broken ({__file__}:"),
    "short": (lambda answer: answer[:4], "step() must be observation, reward"),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("at", [1, 10_001])
def test_an_environment_that_breaks_its_contract_is_named(name, at):
    fault, message = FAULTS[name]
    make = lambda: Counting(fault, at)  # noqa: E731
    envs = GymnasiumEnvs(make, spec_of(make(), "counting"))
    envs.reset(0)
    for _ in range(at - 1):
        envs.step(np.zeros(1, np.int64))
    with pytest.raises(EnvironmentFault) as caught:
        envs.step(np.zeros(1, np.int64))
    text = str(caught.value)
    assert message in text
    assert f"environment 'counting', step {at:,}" in text
    assert "\n" not in text


class Continuous(Counting):
    def __init__(self):
        super().__init__()
        self.action_space = spaces.Box(-1.0, 1.0, (1,))


class Sentences(Counting):
    def __init__(self):
        super().__init__()
        self.observation_space = spaces.Text(10)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (Continuous, "action_space must be Discrete"),
        (Sentences, "observation_space must be a Box"),
        ("LunarLander-v33", "did you mean 'LunarLander-v3'?"),
        ("ALE/Pnog", "did you mean 'Pong'?"),
        ("MinAtar/Breakot", "did you mean 'Breakout'?"),
        ("no_such_module:Env", "cannot import no_such_module"),
        ("gymnasium:Envv", "did you mean 'Env'?"),
        ("collections:abc", "no environment and makes none"),
        ("collections:OrderedDict", "made OrderedDict, not an Env"),
        (3, "a name, a Gymnasium environment, or a function"),
    ],
)
def test_environments_that_cannot_be_used_are_refused_in_one_line(env, message, tmp_path):
    with pytest.raises(UmdqnError, match=r".") as caught:
        umdqn.train(env, out=tmp_path / "run")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_predicted_actions_are_the_environments_own(tmp_path):
    fields = SMALL | {"domain": (-1, 60), "steps": 120, "evaluation.episodes": 2}
    run = umdqn.train(Counting, out=tmp_path / "run", **fields)
    actions, _ = run.predict(np.zeros((20, 2), np.float32))
    assert set(actions.tolist()) <= {3, 4}


def test_a_domain_is_estimated_from_rewards_and_said():
    # Rewards of 1 to 7, no time limit: at most 7 / (1 - 0.5) = 14, and a margin of a tenth.
    make = Counting
    entry = find(named(make))
    with pytest.warns(Notice, match=r"\[-1.4, 15.4\].*between 1 and 7.*--domain"):
        assert estimated_domain(entry, 0.5) == Domain(-1.4, 15.4)


def test_an_estimated_domain_counts_the_steps_of_a_time_limit():
    # Rewards 1 and 2 in episodes of two steps: at most 2 (1 + 0.5), and a margin of a tenth.
    entry = find(named(lambda: gymnasium.wrappers.TimeLimit(Counting(), 2)))
    entry = entry._replace(spec=dataclasses.replace(entry.spec, time_limit=2))
    with pytest.warns(Notice, match=r"\[-0.3, 3.3\].*between 1 and 2"):
        assert estimated_domain(entry, 0.5) == Domain(-0.3, 3.3)


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("truncation_terminates", [False, True])
def test_no_transition_crosses_episodes(copies, truncation_terminates):
    config = configure(named(Counting), overrides=SMALL | {"domain": (-1, 60)})
    loop = HostLoop(
        agent=build_agent(config),
        make=environment(config).hosted,
        replay=Uniform(capacity=500, batch_size=3_000, warmup=10_000),
        discount=0.5,
        update_every=1,
        truncation_terminates=truncation_terminates,
        copies=copies,
    )
    training = HostTraining(loop, [0])
    training.advance(300)
    rings = training.seeds[0].memory
    batch = loop.memory.sample(rings, np.random.default_rng(0)).transition
    training.close()
    (episode, step), (next_episode, next_step) = batch.observation.T, batch.next_observation.T
    np.testing.assert_array_equal(episode, next_episode)
    np.testing.assert_array_equal(step + 1, next_step)
    np.testing.assert_array_equal(batch.reward, next_step)
    ended = next_step == Counting.length
    final = ended if truncation_terminates else ended & (episode % 2 == 0)
    np.testing.assert_array_equal(batch.discount, np.where(final, 0.0, 0.5).astype(np.float32))
    assert final.any()


@pytest.fixture(scope="module")
def counting():
    """An agent for the counting environment, and what it knows before it learns."""
    agent = build_agent(configure(named(Counting), overrides=SMALL | {"domain": (-1, 60)}))
    return agent, agent.init(jax.random.key(0)).learned


@pytest.mark.parametrize("copies", [1, 3])
def test_hosted_evaluation_counts_every_copys_share(copies, counting):
    envs = GymnasiumEnvs(Counting, spec_of(Counting(), "counting"), copies)
    returns = evaluate_hosted(*counting, envs, 0.5, 0, 7, 0.0, 100)
    np.testing.assert_allclose(returns.undiscounted, np.full(7, 28.0))
    expected = sum(0.5**step * (step + 1) for step in range(7))
    np.testing.assert_allclose(returns.discounted, np.full(7, expected), rtol=1e-6)


def test_hosted_evaluation_gives_endless_episodes_up(counting):
    envs = GymnasiumEnvs(Counting, spec_of(Counting(), "counting"), 2)
    returns = evaluate_hosted(*counting, envs, 0.5, 0, 5, 0.0, 3)
    np.testing.assert_allclose(returns.undiscounted, np.full(5, 1.0 + 2 + 3))


@pytest.mark.parametrize("every", quick([200, 1_000], [1_000]))
def test_a_run_whose_environment_breaks_is_kept_and_loads(every, tmp_path):
    make = lambda: Counting(changed(1, np.nan), 450)  # noqa: E731
    fields = SMALL | {"domain": (-1, 60), "chunk": 100, "seeds": 2, "checkpoint_every": every}
    name = named(make)
    config = configure(name, overrides=fields | {"steps": 1_000})
    with pytest.raises(EnvironmentFault, match="reward must be a finite number"):
        train_config(config, tmp_path / "run")
    run = load(tmp_path / "run")
    assert run.manifest["status"] == "failed"
    assert "reward must be" in run.manifest["reason"]
    assert run.step == 400
    # It is what a run of 400 steps learns, to the bit.
    sound = train_config(
        configure(name, overrides=fields | {"steps": 400, "seed": 1, "seeds": 1}), tmp_path / "b"
    )
    for left, right in zip(
        jax.tree.leaves(run.learned[1]), jax.tree.leaves(sound.learned[1]), strict=True
    ):
        np.testing.assert_array_equal(left, right)


def test_objects_do_not_take_each_others_place():
    first, second = named(Counting()), named(Counting(raising, 1))
    assert first != second
    find(first).hosted(1).reset(0)
    with pytest.raises(UmdqnError, match="was an object of another process"):
        find("object Counting 999")


def test_spoilt_parameters_are_noticed_at_the_end_of_a_chunk():
    small = {name: value for name, value in SMALL.items() if not name.startswith("optimiser")}
    fields = small | {"domain": (-1, 60), "optimiser": optax.scale(float("inf"))}
    training = build_training(configure(named(Counting), overrides=fields))
    progress = training.advance(101)[0]
    training.close()
    assert int(progress.updates) == 1
    assert int(progress.first_bad_step) == 101


def test_an_environment_that_cannot_close_spoils_nothing(tmp_path):
    class Stuck(Counting):
        def close(self):
            raise RuntimeError("stuck")

    fields = SMALL | {"domain": (-1, 60), "steps": 120, "evaluation.episodes": 2}
    with pytest.warns(Notice, match="could not close: RuntimeError: stuck"):
        run = umdqn.train(Stuck, out=tmp_path / "run", **fields)
    assert run.manifest["status"] == "finished"


def test_rewards_that_random_steps_do_not_find_leave_the_domain_to_the_user():
    class Maze(Counting):
        def step(self, action):
            return super().step(action)[0], 0.0, False, False, {}

    with pytest.raises(
        UmdqnError, match="cannot be estimated: 1,000 random steps brought no reward"
    ):
        configure(named(Maze), overrides={"support": "fixed"})
    # A learned support needs none.
    assert configure(named(Maze)).domain is None


def test_hosted_forecasts_are_those_of_the_returns():
    """Rewards 1 to 7, every other episode cut at 7 and completed."""
    envs = GymnasiumEnvs(Counting, spec_of(Counting(), "counting"))
    played = play_hosted(envs, lambda seen: np.zeros(len(seen), np.int64), 0, 1_000)
    found = collect(
        envs,
        islice(played, 4),
        lambda seen, actions, z: Judged(*([z / 100 + seen[:, 1]] * 6)),
        lambda seen, number: 10 * float(seen[0]) + number + float(seen[1]),
        0.5,
        True,
    )
    # 0.5^2 is the most that the completion may weigh, so that six of seven steps count.
    assert found.valid.shape == (4, 6)
    assert found.valid.all()
    for episode in range(4):
        # In episodes 1 and 3 the last observation is the episode's number and 7.
        rest = 10 * episode + episode + 7 if episode % 2 else 0
        returns = [
            sum(0.5**k * (t + 1 + k) for k in range(7 - t)) + 0.5 ** (7 - t) * rest
            for t in range(6)
        ]
        np.testing.assert_allclose(found.realised[episode], returns, rtol=1e-6)
        expected = [value / 100 + t for t, value in enumerate(returns)]
        np.testing.assert_allclose(found.judged.pit[episode], expected, rtol=1e-6)
        weight = [0.5 ** (7 - t) * (episode % 2) for t in range(6)]
        np.testing.assert_allclose(found.weight[episode], weight)


def test_host_runs_repeat_bit_for_bit(tmp_path, monkeypatch):
    """Also where they take their memory beforehand and say how much it is."""
    fields = {"replay.warmup": 100, "torso.widths": (16, 16), "steps": 400, "loop": "host"}
    fields |= {"seeds": 2, "num_envs": 2}
    config = configure("CartPole-v1", "dqn", overrides=fields)
    first = train_config(config, tmp_path / "a")
    monkeypatch.setattr(trainer, "_MUCH_MEMORY", 0)
    with pytest.warns(Notice, match=r"this process takes about \d\.\d\d GB"):
        second = train_config(config, tmp_path / "b")
    assert (tmp_path / "a/metrics.jsonl").read_text() == (tmp_path / "b/metrics.jsonl").read_text()
    for left, right in zip(
        jax.tree.leaves(first.learned), jax.tree.leaves(second.learned), strict=True
    ):
        np.testing.assert_array_equal(left, right)
    single = configure("CartPole-v1", "dqn", overrides=fields | {"seeds": 1})
    alone = train_config(single, tmp_path / "c")
    for left, right in zip(
        jax.tree.leaves(first.learned[0]), jax.tree.leaves(alone.learned[0]), strict=True
    ):
        np.testing.assert_array_equal(left, right)


def test_predict_has_the_signature_of_stable_baselines(small_run):
    action, state = small_run.predict(np.array([2.0, 6.0]))
    actions, _ = small_run.predict(np.array([[2.0, 6.0], [0.0, 0.0], [5.0, 1.0]]))
    assert state is None
    assert action.shape == ()
    assert actions.shape == (3,)
    assert action == actions[0]
    means = [law.mean for law in small_run.law([2, 6])]
    assert action == int(np.argmax(means))
    with pytest.raises(UmdqnError, match=r"shape \(2,\), or a batch of such"):
        small_run.predict(np.zeros(5))


def test_predict_explores_unless_it_is_to_be_deterministic(small_run):
    """A random action with probability 0.4, of which 3 in 4 are not the greedy one."""
    policy = dataclasses.replace(small_run.policy(), epsilon=0.4)
    seen = np.full((2_000, 2), [2.0, 6.0])
    greedy, _ = policy.predict(seen)
    first, second = (policy.predict(seen, deterministic=False)[0] for _ in range(2))
    assert (greedy == greedy[0]).all()
    for actions in (first, second):
        assert set(actions) == {0, 1, 2, 3}
        # 0.3 +- 0.01.
        assert np.mean(actions != greedy) == pytest.approx(0.3, abs=0.04)
    # Every call has randomness of its own: independent ones agree in 0.7^2 + 0.3^2 / 3 of cases.
    assert np.mean(first == second) == pytest.approx(0.52, abs=0.05)
