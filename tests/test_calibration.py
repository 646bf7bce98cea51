"""Calibration: right laws are calibrated, wrong ones are named, laws that are points are fair."""

import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import umdqn
from umdqn.analysis.accuracy import stacked, truth
from umdqn.analysis.exact import optimal_policy
from umdqn.calibration.forecasts import Forecasts, Judged, forecast_episodes, judge
from umdqn.calibration.scores import LEVELS, report, summary
from umdqn.cli.main import main
from umdqn.envs.grid_world import SIZE, STATES, GridWorld
from umdqn.errors import Notice, UmdqnError
from umdqn.laws.bellman import Affine
from umdqn.laws.closed import GaussianMixture
from umdqn.runs.build import build_agent, forecast
from umdqn.runs.configure import configure

EPISODES = 2_000


def exact_forecasts(wrong: float = 1.0) -> Forecasts:
    """Forecasts of the exact laws of the optimal policy, their spread off by a factor."""
    laws = stacked([law for row in truth(0.5) for law in row])
    numbers = np.zeros((SIZE, SIZE), np.int32)
    for number, state in enumerate(STATES):
        numbers[state] = number
    table, best = jnp.asarray(numbers), jnp.asarray(optimal_policy().argmax(axis=1))

    def place(observation):
        x, y = observation.astype(jnp.int32)
        return table[x, y]

    def law_of(observation, action):
        law = laws[4 * place(observation) + action]
        return Affine(law, (1 - wrong) * law.mean, jnp.float32(wrong))

    @jax.jit
    def play(keys):
        act = lambda seen, elapsed: best[place(seen)]  # noqa: E731
        return forecast_episodes(GridWorld(), act, law_of, 0.5, True, keys)

    return jax.tree.map(np.asarray, play(jax.random.split(jax.random.key(1), EPISODES)))


def gaussian_forecasts(mean, std, realised) -> Forecasts:
    """Forecasts of Gaussian laws, given arrays [episodes, steps] or numbers."""
    realised = jnp.asarray(realised, jnp.float32)
    means, stds = (jnp.broadcast_to(jnp.float32(x), realised.shape) for x in (mean, std))
    laws = GaussianMixture(jnp.ones((*realised.shape, 1)), means[..., None], stds[..., None])
    judged = jax.jit(jax.vmap(jax.vmap(judge)))(laws, realised)
    nothing = np.zeros(realised.shape, np.float32)
    return jax.tree.map(
        np.asarray, Forecasts(realised, judged, nothing, np.ones(realised.shape, bool))
    )


def normal_returns(episodes=1_000, steps=3) -> np.ndarray:
    """Draws of N(0, 1), standardised: their mean is 0 and their standard deviation 1."""
    draws = np.random.default_rng(0).normal(size=(episodes, steps))
    return (draws - draws.mean()) / draws.std()


def test_exact_laws_are_calibrated():
    found = summary(exact_forecasts())
    for level in LEVELS:
        share, error = found["coverage"][f"{level:g}"], found["coverage_error"][f"{level:g}"]
        # Beyond four standard errors once in 16,000; the key is fixed.
        assert abs(share - level) < 4 * error
        assert error < 0.02
    assert found["episodes"] == EPISODES
    assert found["returns"] > EPISODES
    assert sum(found["pit"]) == pytest.approx(1)
    # Each bar holds a twentieth; episodes are independent, steps within one are at worst equal.
    assert np.abs(np.array(found["pit"]) - 0.05).max() < 4 * np.sqrt(0.05 * 0.95 / EPISODES)
    assert abs(found["bias"]) < 4 * found["bias_error"]
    assert 0 < found["crps_skill"] < 1
    assert found["verdict"].startswith("calibrated: 90% intervals cover ")


def test_too_narrow_laws_are_found_out():
    found = summary(exact_forecasts(wrong=0.7))
    for level in LEVELS:
        share, error = found["coverage"][f"{level:g}"], found["coverage_error"][f"{level:g}"]
        assert share < level - 4 * error
    assert found["verdict"].startswith("too narrow: 90% intervals cover ")


def test_right_gaussians_by_hand():
    found = summary(gaussian_forecasts(0.0, 1.0, normal_returns()))
    assert found["verdict"].startswith("calibrated: 90% intervals cover 9")
    # One law for all states is the right one: 1 / sqrt(pi) for both, so that the skill is 0.
    assert found["crps"] == pytest.approx(1 / np.sqrt(np.pi), abs=0.03)
    assert found["crps_reference"] == pytest.approx(1 / np.sqrt(np.pi), abs=0.03)
    assert found["crps_skill"] == pytest.approx(0, abs=1e-2)
    assert found["bias_error"] == pytest.approx(1 / np.sqrt(3_000), rel=0.1)
    assert found["interval_90"] == pytest.approx(2 * 1.645, abs=1e-2)
    assert found["edge_mass"] is None


WRONG = {
    # Below N(8, 1)'s median nearly always; the shift is 8.
    "optimistic": (8.0, 1.0, "too optimistic by 8: realised returns fall below the law's median"),
    "pessimistic": (-0.5, 1.0, "too pessimistic by 0.5: realised returns fall above the law's"),
    "narrow": (0.0, 0.5, "too narrow: 90% intervals cover "),
    # P(|N| < 1.645 x 2.5) = 0.99996
    "wide": (0.0, 2.5, "too wide: 90% intervals cover 100% of realised returns"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_laws_are_named(case):
    mean, std, begins = WRONG[case]
    found = summary(gaussian_forecasts(mean, std, normal_returns()))
    assert found["verdict"].startswith(begins)
    assert found["bias"] == pytest.approx(-mean, abs=1e-5)
    if case == "narrow":  # P(|N| < 1.645 / 2); two standard errors of 3,000 draws are 0.018
        assert found["coverage"]["0.9"] == pytest.approx(0.589, abs=0.018)


def test_skill_by_hand():
    """Returns m + N(0, 1) with m = -10 or 10, and laws that know m."""
    m = np.where(np.arange(1_000)[:, None] % 2, 10.0, -10.0)
    found = summary(gaussian_forecasts(m, 1.0, m + normal_returns()))
    # Half of all pairs are 20 apart, the others 2 / sqrt(pi): E|G - G'| / 2 = 5 + 0.282.
    assert found["crps_reference"] == pytest.approx(5.282, abs=0.05)
    assert found["crps_skill"] == pytest.approx(1 - 0.564 / 5.282, abs=0.01)


def test_episodes_are_the_independent_unit():
    """A hundred equal steps tell as much as one."""
    once = summary(gaussian_forecasts(0.0, 1.0, normal_returns(episodes=30, steps=1)))
    often = np.repeat(normal_returns(episodes=30, steps=1), 100, axis=1)
    again = summary(gaussian_forecasts(0.0, 1.0, often))
    for key in ("bias_error", "crps_error", "below_median_error"):
        assert again[key] == pytest.approx(once[key], rel=1e-4)
    assert again["effective_episodes"] == pytest.approx(30)
    assert again["verdict"].startswith("no fault found, but 30 episodes are too few to tell")


def test_summary_by_hand():
    # Four returns that count: 0.1, 0.5, 0.6 and 0.97; the fifth came after the end.
    pit = np.array([[0.1, 0.5, 0.0], [0.6, 0.97, 0.0]])
    valid = np.array([[True, True, False]] * 2)
    nothing = np.zeros_like(pit)
    judged = Judged(pit, nothing, nothing - 1, nothing + 1, nothing, nothing)
    found = summary(Forecasts(pit, judged, nothing, valid))
    assert found["returns"] == 4
    assert found["coverage"]["0.5"] == pytest.approx(2 / 4)  # 0.25 to 0.75
    assert found["coverage"]["0.95"] == pytest.approx(4 / 4)
    # One of each episode's two lies inside: episodes agree, so the error is 0.
    assert found["coverage_error"]["0.5"] == pytest.approx(0.0)
    # The empirical CDF is 1/4 just above 0.1 and still 1/4 just below 0.5.
    assert found["ks"] == pytest.approx(0.25)
    # Laws with mean 0: the bias is the mean return. Sums of episodes are 0.6 and 1.57, which are
    # 0.485 off; sqrt(2 x 0.485^2 x 2 / (2 - 1)) / 4.
    assert found["bias"] == pytest.approx(2.17 / 4)
    assert found["bias_error"] == pytest.approx(2 * 0.485 / 4)


def test_points_are_compared_at_a_tolerance():
    """Laws that are points, and returns of 5 or 50 that miss them by rounding."""
    size = np.where(np.arange(500)[:, None] % 2, 50.0, 5.0)
    near = size + 1e-3 * normal_returns(episodes=500)
    found = summary(gaussian_forecasts(size, 1e-5, near))
    # A thousandth of sqrt((5^2 + 50^2) / 2) = 35.5.
    assert found["tolerance"] == pytest.approx(0.0355, rel=0.01)
    assert found["point_like"] == 1.0
    # Transforms are drawn: 1,500 of them, so that the standard error is 0.008.
    assert found["coverage"]["0.9"] == pytest.approx(0.9, abs=0.03)
    assert found["verdict"].startswith("returns are nearly deterministic here: the laws' mean is")
    # Points that returns really miss are not excused.
    far = summary(gaussian_forecasts(size, 1e-5, size + 5 * normal_returns(episodes=500)))
    assert far["coverage"]["0.9"] < 0.02
    assert far["verdict"].startswith("too narrow: 90% intervals cover 0")


def test_known_returns_are_judged_by_their_mean():
    """Returns of 100 +- 0.01, as of a balanced pole."""
    returns = 100 + 0.01 * normal_returns(episodes=50)
    begins = "returns are nearly deterministic here (100 +- 0.01): "
    cases = {
        (110.0, 0.1): "the laws are too optimistic by 10 (10.0%)",
        (100.2, 0.01): "the laws' mean is right within 0.2%, and 90% intervals are 0.033 wide",
        (100.2, 9.0): "the laws' mean is right within 0.2%, but they are too wide",
    }
    for (mean, std), ends in cases.items():
        found = summary(gaussian_forecasts(mean, std, returns))
        assert found["verdict"].startswith(begins + ends)
        # Returns that hardly differ leave nothing to be skilful about.
        assert found["crps_skill"] is None
    zero = summary(gaussian_forecasts(0.5, 0.1, np.zeros((5, 2))))
    assert zero["verdict"] == "every realised return is 0 here: the laws' mean is 0.5"


def test_verdicts_of_broken_laws():
    found = summary(gaussian_forecasts(np.nan, 1.0, normal_returns(episodes=10)))
    assert found["verdict"].startswith("no verdict")


def test_programs_compile_once_for_all_seeds(small_run):
    compiled = []

    def count(event, duration, **_):
        compiled.extend([event] * (event == "/jax/core/compile/backend_compile_duration"))

    run = small_run
    first = forecast(run.config, run.agent, run.learned[0], 0, 7)
    jax.monitoring.register_event_duration_secs_listener(count)
    try:
        second = forecast(run.config, run.agent, run.learned[1], 1, 7)
        assert not compiled
    finally:
        jax.monitoring.unregister_event_duration_listener(count)
    assert not np.array_equal(first.judged.mean, second.judged.mean)
    both = report({0: first, 1: second})
    assert both["returns"] == sum(part["returns"] for part in both["seeds"].values())
    # Laws continue beyond a support that is learned.
    assert both["edge_mass"] is None


def test_laws_on_a_fixed_support_have_edges():
    config = configure(overrides={"support": "fixed", "representation.intervals": 20})
    agent = build_agent(config)
    found = forecast(config, agent, agent.fresh(jax.random.key(0)), 0, 7)
    assert np.isfinite(found.judged.edge).all()
    assert 0 <= report({0: found})["edge_mass"] <= 1


def test_calibrate_on_the_command_line(small_run, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(small_run.path, run)
    assert umdqn.load(run).trust is None
    picture = tmp_path / "calibration.png"
    options = ["--episodes", "50", "--json", "--save", "--out", str(picture)]
    assert main(["calibrate", str(run), *options]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(json.dumps(small_run.calibration(50)))
    assert set(printed["seeds"]) == {"0", "1"}
    assert printed["episodes"] == 100
    assert picture.stat().st_size > 10_000
    assert main(["calibrate", str(run), "--episodes", "50"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"verdict: {printed['verdict']}"
    assert main(["calibrate", str(run), "--episodes", "0"]) == 1
    loaded = umdqn.load(run)
    assert loaded.trust == small_run.trust
    assert loaded.trust.verdict == printed["verdict"]
    assert loaded.trust.coverage_90 == printed["coverage"]["0.9"]
    assert f"laws: {printed['verdict']})" in repr(loaded)
    # What was found of one checkpoint says nothing of another.
    assert umdqn.load(run, 2_000).trust is None
    with pytest.raises(UmdqnError, match="call calibration"):
        loaded.save_trust()
    (run / "calibration.json").write_text("{}")
    with pytest.warns(Notice, match="ignoring a saved calibration"):
        assert umdqn.load(run).trust is None
