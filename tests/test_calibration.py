"""Calibration: exact laws are calibrated, wrong ones are not."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from umdqn.analysis.accuracy import stacked, truth
from umdqn.analysis.calibration import LEVELS, calibration_report, summary
from umdqn.analysis.exact import optimal_policy
from umdqn.analysis.pits import Pits, realised_pits, usable_steps
from umdqn.cli.main import main
from umdqn.envs.grid_world import SIZE, STATES, GridWorld

EPISODES = 4_000


def exact_pits(wrong: float = 1.0) -> Pits:
    """Transforms under the exact laws of the optimal policy, their spread off by a factor."""
    laws = stacked([law for row in truth(0.5) for law in row])
    numbers = np.zeros((SIZE, SIZE), np.int32)
    for number, state in enumerate(STATES):
        numbers[state] = number
    table, best = jnp.asarray(numbers), jnp.asarray(optimal_policy().argmax(axis=1))

    def place(observation):
        x, y = observation.astype(jnp.int32)
        return table[x, y]

    def cdf(observation, action, z):
        law = laws[4 * place(observation) + action]
        return law.cdf(law.mean + (z - law.mean) / wrong)

    return realised_pits(
        GridWorld(), lambda seen, elapsed: best[place(seen)], cdf, 0.5, EPISODES, jax.random.key(1)
    )


def test_exact_laws_are_calibrated():
    report = summary(exact_pits())
    for level in LEVELS:
        found, error = report["coverage"][f"{level:g}"], report["coverage_error"][f"{level:g}"]
        # Beyond four standard errors once in 16,000; the key is fixed.
        assert abs(found - level) < 4 * error
        assert error < 0.02
    assert report["episodes"] == EPISODES
    assert report["returns"] > EPISODES
    assert sum(report["pit"]) == pytest.approx(1)
    # Each bar holds a twentieth; episodes are independent, steps within one are at worst equal.
    assert np.abs(np.array(report["pit"]) - 0.05).max() < 4 * np.sqrt(0.05 * 0.95 / EPISODES)


def test_too_narrow_laws_are_found_out():
    report = summary(exact_pits(wrong=0.7))
    for level in LEVELS:
        found, error = report["coverage"][f"{level:g}"], report["coverage_error"][f"{level:g}"]
        assert found < level - 4 * error


def test_summary_by_hand():
    # Four returns that count: 0.1, 0.5, 0.6 and 0.97; the fifth came after the end.
    pits = Pits(np.array([[0.1, 0.5, 0.0], [0.6, 0.97, 0.0]]), np.array([[True, True, False]] * 2))
    report = summary(pits)
    assert report["returns"] == 4
    assert report["coverage"]["0.5"] == pytest.approx(2 / 4)  # 0.25 to 0.75
    assert report["coverage"]["0.95"] == pytest.approx(4 / 4)
    # One of each episode's two lies inside: episodes agree, so the error is 0.
    assert report["coverage_error"]["0.5"] == pytest.approx(0.0)
    # The empirical CDF is 1/4 just above 0.1 and still 1/4 just below 0.5.
    assert report["ks"] == pytest.approx(0.25)


def test_steps_that_a_time_limit_cuts_are_left_out():
    # 0.5^10 is the first power below 1e-3.
    assert usable_steps(0.5, 20) == 10
    assert usable_steps(0.99, 200) == 1
    assert usable_steps(0.0, 20) == 20


def test_calibrate_on_the_command_line(small_run, tmp_path, capsys):
    picture = tmp_path / "calibration.png"
    options = ["--episodes", "50", "--json", "--out", str(picture)]
    assert main(["calibrate", str(small_run.path), *options]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(json.dumps(calibration_report(small_run, 50)))
    assert set(printed["seeds"]) == {"0", "1"}
    assert printed["episodes"] == 100
    assert picture.stat().st_size > 10_000
    assert main(["calibrate", str(small_run.path), "--episodes", "0"]) == 1
