"""Calibration where time limits cut episodes: the same rule in compiled and hosted environments."""

import dataclasses
from itertools import islice

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from umdqn.calibration.forecasts import Forecasts, counted_steps, forecast_episodes, judge
from umdqn.calibration.hosted import collect
from umdqn.calibration.scores import summary
from umdqn.envs.catalogue import find
from umdqn.laws.closed import Dirac
from umdqn.loops.host_episodes import play_hosted
from umdqn.runs.build import forecast


def test_steps_that_count():
    # 0.5^2 = 0.25 is the most that may come from the law itself.
    assert counted_steps(0.5, 20) == 19
    # 0.99^138 = 0.2498: the steps 0 to 362 of 500; none of 100, so the first.
    assert counted_steps(0.99, 500) == 363
    assert counted_steps(0.99, 100) == 1
    assert counted_steps(0.0, 20) == 20


def balance(observation):
    """Choose the push that keeps CartPole's pole up for 500 steps."""
    place, speed, angle, turn = observation
    return jnp.where(angle + 0.3 * turn + 0.02 * place + 0.05 * speed > 0, 1, 0)


def pole_forecasts(value: float, completes: bool) -> Forecasts:
    env = find("CartPole-v1").compiled
    keys = jax.random.split(jax.random.key(0), 5)
    found = forecast_episodes(
        env,
        lambda seen, elapsed: balance(seen),
        lambda seen, action: Dirac(jnp.float32(value)),
        0.99,
        completes,
        keys,
    )
    return jax.tree.map(np.asarray, found)


def test_a_perfect_law_of_a_balanced_pole_is_calibrated():
    """Its return is 1 / (1 - 0.99) = 100; until the cut after 500 steps it is 99.34."""
    found = pole_forecasts(100.0, completes=True)
    assert found.valid.all()
    np.testing.assert_allclose(found.realised, 100.0, rtol=1e-5)
    scores = summary(found)
    assert scores["verdict"].startswith("returns are nearly deterministic here (100 +- ")
    assert "the laws' mean is right within 0.1%, and 90% intervals are 0 wide" in scores["verdict"]
    # Mean of 0.99^138 to 0.99^500.
    weight = np.mean(0.99 ** np.arange(138, 501))
    assert scores["cut_weight"] == pytest.approx(weight, rel=1e-4)
    assert scores["completed"] == 1.0
    # 10 too high at the start is 10 x 0.99^k too high at the cut: what is seen is the rest.
    wrong = summary(pole_forecasts(110.0, completes=True))
    assert wrong["bias"] == pytest.approx(-10 * (1 - weight), rel=1e-3)
    assert "too optimistic by 9.3 (9." in wrong["verdict"]


def test_time_limits_that_end_the_return_are_not_completed():
    found = pole_forecasts(100.0, completes=False)
    assert found.realised.shape == (5, 500)
    assert found.realised[0, 0] == pytest.approx((1 - 0.99**500) / 0.01, rel=1e-5)  # 99.34
    assert found.realised[0, -1] == 1.0
    assert not found.weight.any()


@pytest.mark.parametrize("completes", [True, False])
def test_hosted_episodes_follow_the_same_rule(completes):
    compiled = pole_forecasts(90.0, completes)
    env = find("CartPole-v1").hosted(1)
    played = play_hosted(env, lambda seen: np.asarray(balance(seen[0]))[None], 0, 1_000)
    point = jax.jit(jax.vmap(lambda seen, action, z: judge(Dirac(jnp.float32(90.0)), z)))
    found = collect(env, islice(played, 2), point, lambda seen, number: 90.0, 0.99, completes)
    env.close()
    assert found.valid.all()
    for left, right in zip(jax.tree.leaves(found), jax.tree.leaves(compiled), strict=True):
        np.testing.assert_allclose(left, np.asarray(right)[:2], rtol=1e-4, atol=2e-4)


def test_an_agent_is_judged_alike_in_both_loops(small_run):
    """The grid world compiled and in Python: means of 100 episodes, five standard errors."""
    run, found = small_run, {}
    for loop in ("compiled", "host"):
        config = dataclasses.replace(run.config, loop=loop)
        found[loop] = summary(forecast(config, run.agent, run.learned[0], 0, 100))
    left, right = found.values()
    for name in ("bias", "below_median", "crps"):
        error = np.hypot(left[f"{name}_error"], right[f"{name}_error"])
        assert abs(left[name] - right[name]) < 5 * error
    # The longest of the episodes that are counted; the limit is 20 steps.
    assert all(2 <= each["steps_counted"] <= 20 for each in (left, right))
