"""Supports follow rewards of any size: a short training gives the known laws in their own units."""

import dataclasses

import gymnasium
import numpy as np
import pytest

import umdqn
from quick import quick
from umdqn.envs.catalogue import find, named
from umdqn.errors import Notice
from umdqn.runs.domains import estimated_domain

# One step, then the end. Action 0 pays 3 or 5 at random, action 1 pays 1 or 2, with noise 0.2.
# Means 4 and 1.5; variances 1 + 0.04 and 0.25 + 0.04.
GAMBLES = umdqn.FiniteMdp(
    probability=np.full((1, 2, 2), 0.5),
    next_state=np.zeros((1, 2, 2), int),
    reward=np.array([[[3.0, 5.0], [1.0, 2.0]]]),
    reward_std=0.2,
    terminated=True,
    discount=0.9,
    name="gambles",
)
MEANS, STDS = np.array([4.0, 1.5]), np.sqrt([1.04, 0.29])
SETTINGS = {
    "steps": 3_000,
    "replay.warmup": 200,
    "evaluation.every": 3_000,
    "evaluation.episodes": 2,
    "checkpoint_every": 3_000,
    "torso.widths": "32,32",
    "exploration.decay": 1e6,
    "seed": 1,
}


@pytest.fixture(scope="module", params=quick([1e-6, 1e6], [1e-6]))
def scaled(request, tmp_path_factory):
    """Laws that were learned of rewards of some size, and the size."""
    size = request.param
    mdp = dataclasses.replace(
        GAMBLES, reward=GAMBLES.reward * size, reward_std=GAMBLES.reward_std * size
    )
    out = tmp_path_factory.mktemp("scales") / "run"
    run = umdqn.train(mdp, "umdqn-c", out=out, **SETTINGS)
    return run, run.law([1.0]), size


def test_laws_have_the_moments_of_the_rewards(scaled):
    _, laws, size = scaled
    np.testing.assert_allclose(np.asarray(laws.mean) / size, MEANS, atol=0.25)
    np.testing.assert_allclose(np.asarray(laws.std) / size, STDS, atol=0.25)


def test_nearly_all_mass_is_where_rewards_are(scaled):
    """The supports are no wider than the rewards ask for: quantiles lie among them."""
    _, laws, size = scaled
    low, middle, high = np.asarray(laws.quantile(np.array([0.05, 0.5, 0.95], np.float32))).T / size
    for action, (least, most) in enumerate([(3, 5), (1, 2)]):
        assert least - 0.8 < low[action] < middle[action] < high[action] < most + 0.8
    # Both of two values are as likely: a quarter of mass lies in the half below the mean's half.
    halves = np.diag(np.asarray(laws.cdf((MEANS * size).astype(np.float32))))
    np.testing.assert_allclose(halves, 0.5, atol=0.15)


def test_the_greedy_action_is_the_better_one(scaled):
    run, _, size = scaled
    assert int(run.predict([1.0])[0]) == 0
    returns = run.evaluate(200)[1].undiscounted
    assert np.mean(returns) / size == pytest.approx(4.0, abs=4 * np.sqrt(1.04 / 200) + 0.01)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_a_guessed_domain_has_the_size_of_the_rewards(size):
    """CartPole pays 1 a step, for up to 500 steps: 2 with discount 1/2, and a tenth around it."""

    def make():
        env = gymnasium.make("CartPole-v1")
        return gymnasium.wrappers.TransformReward(env, lambda reward: size * reward)

    with pytest.warns(Notice, match="are taken to lie in"):
        domain = estimated_domain(find(named(make)), 0.5)
    assert (domain.low, domain.high) == pytest.approx((-0.2 * size, 2.2 * size))
