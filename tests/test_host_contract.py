"""What environments in Python are given and may do: seeds, arrays they reuse, random actions."""

import dataclasses
from functools import partial

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium import spaces

from umdqn.envs.catalogue import named
from umdqn.envs.description import spec_of
from umdqn.envs.hosted import GymnasiumEnvs
from umdqn.loops.host import HostLoop
from umdqn.loops.host_training import HostTraining
from umdqn.replay.uniform import Uniform
from umdqn.runs.build import build_agent, environment, evaluate
from umdqn.runs.configure import configure

LENGTH = 4
SMALL = {
    "torso.widths": (8,),
    "replay.warmup": 100,
    "replay.capacity": 500,
    "domain": (-1.0, 10.0),
    "evaluation.epsilon": 0.5,
}


class Reusing(gymnasium.Env):
    """Observes its episode and its step, in one array that it overwrites; pays its action."""

    seeds: list[int] = []  # noqa: RUF012

    def __init__(self):
        self.observation_space = spaces.Box(-10.0, 1e6, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self._seen = np.array([-1, 0], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        Reusing.seeds.append(seed)
        self._seen += (1, 0)
        self._seen[1] = 0
        return self._seen, {}

    def step(self, action):
        self._seen[1] += 1
        return self._seen, float(action), self._seen[1] == LENGTH, False, {}


@pytest.fixture(scope="module")
def config():
    return configure(named(Reusing), "dqn", overrides=SMALL)


@pytest.fixture(scope="module")
def agent(config):
    return build_agent(config)


def test_the_last_observation_of_an_episode_is_not_the_next_ones_first():
    envs = GymnasiumEnvs(Reusing, spec_of(Reusing(), "reusing"), 2)
    first = envs.reset(0)
    steps = [envs.step(np.zeros(2, np.int64)) for _ in range(2 * LENGTH)]
    np.testing.assert_array_equal(first, [[0, 0], [0, 0]])
    for number, step in enumerate(steps):
        episode, count = divmod(number, LENGTH)
        np.testing.assert_array_equal(step.observation, [[episode, count + 1]] * 2)
        following = [episode, count + 1] if count + 1 < LENGTH else [episode + 1, 0]
        np.testing.assert_array_equal(step.following, [following] * 2)


def test_memories_hold_what_was_seen_and_every_episode_has_a_seed_of_its_own(config, agent):
    loop = HostLoop(
        agent=agent,
        make=environment(config).hosted,
        replay=Uniform(capacity=500, batch_size=1_000, warmup=1_000),
        discount=0.5,
        update_every=1,
        truncation_terminates=False,
        copies=2,
    )

    # Of each copy, the first 20 of 250.
    slots = np.concatenate([np.arange(20), 250 + np.arange(20)])

    def train(seeds):
        Reusing.seeds.clear()
        training = HostTraining(loop, seeds)
        reports = training.advance(40)
        training.close()
        return training, reports, list(Reusing.seeds)

    training, reports, both = train([0, 1])
    for seed, report in zip(training.seeds, reports, strict=True):
        seen = loop.memory.sample(seed.memory, np.random.default_rng(0)).transition
        np.testing.assert_array_equal(seen.observation[:, 0], seen.next_observation[:, 0])
        np.testing.assert_array_equal(seen.observation[:, 1] + 1, seen.next_observation[:, 1])
        np.testing.assert_array_equal(seen.reward, seen.action)
        last = seen.next_observation[:, 1] == LENGTH
        np.testing.assert_array_equal(seen.discount, np.where(last, 0, 0.5).astype(np.float32))
        # Two copies, five episodes each; all 40 rewards are in the memory.
        everything = loop.memory.transitions(seed.memory, slots)
        assert int(report.episodes) == 10
        assert float(report.returns) == everything.reward.sum()
    # Each of two seeds and two copies: 20 steps are five episodes, and a sixth begins.
    assert len(both) == 2 * 2 * 6
    assert len(set(both)) == len(both)
    alone = train([1])[2]
    assert len(alone) == 12
    assert set(alone) < set(both)


def test_hosted_evaluations_explore_as_told_with_episodes_of_their_own(config, agent):
    """Half of the actions are random, so that a quarter is not the greedy one.

    An episode pays how often it chose action 1; the observation tells the network its step, and
    the same network always answers the same.
    """
    learned = agent.fresh(jax.random.key(0))
    greedy = dataclasses.replace(
        config, evaluation=dataclasses.replace(config.evaluation, epsilon=0.0)
    )
    Reusing.seeds.clear()
    found = evaluate(config, agent, learned, 0, 10, 400).undiscounted
    seeds = [set(Reusing.seeds)]
    for seed, step in ((0, 11), (1, 10)):
        Reusing.seeds.clear()
        evaluate(greedy, agent, learned, seed, step, 20)
        seeds.append(set(Reusing.seeds))
    best = evaluate(greedy, agent, learned, 0, 10, 400).undiscounted
    assert not seeds[0] & seeds[1]
    assert not seeds[0] & seeds[2]
    assert not seeds[1] & seeds[2]
    # Greedy choices depend on episode and step alone, so that copies agree.
    assert len(set(best.tolist())) < LENGTH + 1
    # A random action moves the sum towards half of the length, by half of the distance.
    expected = best.mean() / 2 + LENGTH / 4
    deviation = np.sqrt(LENGTH * 0.25 / 400)
    assert abs(found.mean() - expected) < 4 * deviation
    assert found.var() > 0.5 * LENGTH * 0.1875


def _noise(random, leaf):
    return random.normal(size=leaf.shape).astype(np.float32)


def test_compiled_evaluations_explore_as_told():
    """With random actions only, the network does not matter; with greedy ones it does."""
    config = configure("grid-world", "dqn", overrides={"torso.widths": (8,)})
    agent = build_agent(config)
    fresh = agent.fresh(jax.random.key(0))
    # Fresh networks prefer no action.
    networks = [
        fresh._replace(params=jax.tree.map(partial(_noise, np.random.default_rng(n)), fresh.params))
        for n in range(6)
    ]
    for epsilon, same in ((1.0, True), (0.0, False)):
        told = dataclasses.replace(
            config, evaluation=dataclasses.replace(config.evaluation, epsilon=epsilon)
        )
        found = {evaluate(told, agent, each, 0, 10, 10).discounted.tobytes() for each in networks}
        assert (len(found) == 1) == same
