"""Statistics over few runs: hand-derived cases, and scipy where it has the same thing."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from umdqn.analysis.comparison import final_table, scales_table, scores_of, summary_table
from umdqn.analysis.reference import reference_scores
from umdqn.analysis.statistics import (
    estimate,
    iqm,
    mean,
    median,
    moving_average,
    optimality_gap,
    performance_profile,
    probability_of_improvement,
    profile_band,
    resampled,
    sample_efficiency,
)
from umdqn.envs.catalogue import CATALOGUE
from umdqn.errors import UmdqnError

SCORES = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 80.0]])


def test_aggregates_by_hand():
    # The middle four of 1 to 7 and 80 are 3, 4, 5, 6.
    assert iqm(SCORES) == 4.5
    # Means of the tasks: 4 and 23.
    assert mean(SCORES) == 13.5
    assert median(np.concatenate([SCORES, SCORES[:, :1]], axis=1)) == 4.0
    # Scores above the optimum of 1 count as 1.
    assert optimality_gap(np.array([[0.5, 2.0], [0.0, 1.0]])) == 1 - (0.5 + 1 + 0 + 1) / 4


@pytest.mark.parametrize("shape", [(5, 1), (5, 3), (3, 7), (1, 1), (10, 4)])
def test_interquartile_mean_is_the_trimmed_mean(shape):
    scores = np.random.default_rng(0).normal(size=shape)
    assert iqm(scores) == pytest.approx(stats.trim_mean(scores, 0.25, axis=None))


def test_profiles_by_hand():
    profile = performance_profile(SCORES, np.array([0.0, 1.0, 4.5, 100.0]))
    np.testing.assert_allclose(profile, [1, 7 / 8, 4 / 8, 0])


def test_probability_of_improvement_by_hand():
    first, second = np.array([[1.0], [2.0]]), np.array([[1.0], [3.0]])
    # (1, 1) is a tie, (2, 1) a win, (1, 3) and (2, 3) are losses.
    assert probability_of_improvement(first, second).value == 1.5 / 4
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(6, 2)), rng.normal(0.5, size=(4, 2))
    wins = [stats.mannwhitneyu(x[:, i], y[:, i]).statistic / 24 for i in range(2)]
    assert probability_of_improvement(x, y).value == pytest.approx(np.mean(wins))
    with pytest.raises(UmdqnError, match="the same tasks"):
        probability_of_improvement(x, y[:, :1])


def test_the_bootstrap_draws_runs_task_by_task():
    again = resampled(SCORES, 500, np.random.default_rng(0))
    assert again.shape == (500, 4, 2)
    for task in range(2):
        assert set(np.unique(again[..., task])) == set(SCORES[:, task])
    # Tasks are drawn apart: rows mix.
    assert len({tuple(row) for row in again.reshape(-1, 2)}) == 16


def test_intervals():
    # Of two runs, the mean of two draws is 0, 1/2 or 1 with probabilities 1/4, 1/2, 1/4.
    assert estimate(np.array([[0.0], [1.0]]), mean) == (0.5, 0.0, 1.0)
    scores = np.random.default_rng(2).normal(size=(200, 1))
    value, low, high = estimate(scores, mean)
    assert value == scores.mean()
    # The bootstrap's standard error is that of a mean; 2,000 repetitions know the 2.5% quantile
    # within about 5% of a standard error (three of its own).
    error = scores.std() / np.sqrt(200)
    reps_error = np.sqrt(0.025 * 0.975 / 2_000) / stats.norm.pdf(1.96)
    assert low == pytest.approx(value - 1.96 * error, abs=3 * reps_error * error)
    assert high == pytest.approx(value + 1.96 * error, abs=3 * reps_error * error)
    # Shares of two draws above 1/2, and wins of two draws against 1, have the same law.
    band = profile_band(np.array([[0.0], [1.0]]), np.array([-1.0, 0.5, 2.0]))
    np.testing.assert_array_equal(band, ([1, 0, 0], [1, 1, 0]))
    better = probability_of_improvement(np.array([[0.0], [2.0]]), np.array([[1.0]]))
    assert better == (0.5, 0.0, 1.0)
    # The same every time.
    assert estimate(scores, mean) == (value, low, high)


def test_curves():
    values = np.array([[0.0, 3.0, 6.0, 12.0]])
    # Of three around each, (0 + 3 + 6) / 3 and (3 + 6 + 12) / 3; both ends stay.
    np.testing.assert_allclose(moving_average(values, 3), [[0, 3, 7, 12]])
    np.testing.assert_allclose(moving_average(values, 9), [[0, 3, 7, 12]])
    np.testing.assert_allclose(moving_average(values, 1), values)
    five = np.array([[5.0, 0.0, 10.0, 20.0, 5.0]])
    np.testing.assert_allclose(moving_average(five, 5), [[5, 5, 8, 35 / 3, 5]])
    runs = np.stack([values, values + 2])
    curve = sample_efficiency([1, 2, 3, 4], runs, mean, window=3)
    np.testing.assert_allclose(curve.value, [1, 4, 8, 13])
    np.testing.assert_allclose(curve.high - curve.low, 2)
    # The middle two of 0, 1, 3, 100 and of 0, 0, 1, 5.
    four = np.array([[[0.0, 0.0]], [[1.0, 1.0]], [[3.0, 5.0]], [[100.0, 0.0]]])
    np.testing.assert_allclose(sample_efficiency([1, 2], four, window=3).value, [2, 0.5])
    with pytest.raises(UmdqnError, match="window = 2 is not allowed: an odd number"):
        moving_average(values, 2)


@given(st.floats(-5, 5), st.floats(-5, 5), st.integers(1, 30), st.sampled_from([1, 3, 5, 9]))
def test_smoothing_shifts_no_end(start, slope, count, window):
    """A straight line stays as it is, also where it begins and ends."""
    line = start + slope * np.arange(count)
    np.testing.assert_allclose(moving_average(line, window), line, atol=1e-9)


def record(env, agent, seed, step, score):
    return {"env": env, "agent": agent, "step": step, "seed": seed, "return_mean": score}


RECORDS = [
    record(env, agent, seed, step, step * gain + seed)
    for env in ("a", "b")
    for agent, gain in (("slow", 1.0), ("fast", 2.0))
    for seed in (0, 1)
    for step in (10, 20)
]


def test_scores_of_records():
    scores = scores_of(RECORDS)
    assert scores.algorithms == ["slow", "fast"]
    np.testing.assert_array_equal(scores.raw["fast"]["b"], [[20, 40], [21, 41]])
    # Final returns are 20, 21, 40, 41.
    np.testing.assert_allclose(scores.normalised("slow"), [[0, 0], [1 / 21, 1 / 21]])
    assert scores.ranks() == {"slow": {"a": 2, "b": 2}, "fast": {"a": 1, "b": 1}}
    # Evaluations at 10 and 20 of 20 steps; before the first there is only the first.
    along = scores.along("slow", np.array([0.1, 0.5, 0.9, 1.0]))
    np.testing.assert_allclose(along[0, 0], np.array([-10, -10, -10, 0]) / 21)
    assert along.shape == (2, 2, 4)
    # Each pair once, and only of those that there are.
    better = scores.improvements(["fast", "slow"], ["slow", "fast", "nobody"])
    assert better == {("fast", "slow"): (1, 1, 1)}
    header, rows = summary_table(RECORDS)
    assert header[:2] == ["env", "agent"]
    assert rows[1] == ["a", "fast", "20", "2", "40.500 (2 runs)"]


def test_final_returns_and_falls_by_hand():
    returns = [0.0, 4.0, 8.0, 6.0, 8.0, 10.0, 5.0, 10.0, 7.0, 9.0]
    records = [record("a", "x", 0, step, score) for step, score in enumerate(returns)]
    scores = scores_of(records)
    # Two of ten evaluations are a fifth.
    np.testing.assert_allclose(scores.final("x", "a"), [8])
    # Below the best so far by 0, 5, 0, 3 and 1 of 10 at the last five.
    assert scores.fall("x", "a") == pytest.approx(9 / 5 / 10) == 0.18
    assert final_table(scores)[1] == [["a", "x", "1", "8.000 (1 run)", "10.000 at 5", "0.180"]]
    assert scores_of([record("a", "x", 0, 1, 3.0)]).fall("x", "a") == 0


def test_where_all_end_alike_all_are_best():
    ends = {"a": (500.0, 500.0), "b": (500.0, 400.0)}
    records = [
        record(env, agent, seed, 10, score if agent == "y" else 500.0)
        for env, scores in ends.items()
        for agent in ("x", "y")
        for seed, score in enumerate(scores)
    ]
    scores = scores_of(records)
    np.testing.assert_allclose(scores.normalised("x"), [[1, 1], [1, 1]])
    # One of four runs, on the task where they differ, is the worst of all.
    assert scores.aggregates()["y"]["optimality gap"].value == 0.25


def test_what_varies_beside_the_agent_is_part_of_its_name():
    records = [
        {"env": "a", "agent": "w", "kappa": kappa, "step": 10, "seed": 0, "return_mean": kappa}
        for kappa in (0.1, 1.0)
    ]
    assert scores_of(records).algorithms == ["w kappa=0.1", "w kappa=1.0"]
    # What goes with the environment says nothing of the agent.
    records[1]["env"] = "b"
    assert scores_of(records).algorithms == ["w"]


def test_algorithms_are_compared_where_all_were_tried():
    extra = scores_of([*RECORDS, record("c", "fast", 0, 10, 5.0)])
    assert extra.tasks == ["a", "b", "c"]
    assert extra.common == ["a", "b"]
    uneven = scores_of([*RECORDS, record("a", "fast", 2, 10, 1.0), record("a", "fast", 2, 20, 1.0)])
    # Three seeds on one task, two on the other: two of each count.
    assert uneven.normalised("fast").shape == (2, 2)
    once = scores_of([*RECORDS, *(record("c", agent, 0, 10, 5.0) for agent in ("slow", "fast"))])
    # Runs that went on are compared where the others ended, and that is said.
    further = [record("a", "fast", seed, 30, 99.0) for seed in (0, 1)]
    scores = scores_of([*RECORDS, *further])
    assert scores.longer == {"a": 30}
    assert (scores.steps["a"][-1], scores_of(RECORDS).longer) == (20, {})
    # One run on a task does not make others count less.
    assert once.common == ["a", "b", "c"]
    assert once.ranks()["slow"] == {"a": 2, "b": 2}
    assert once.repeated == ["a", "b"]
    np.testing.assert_allclose(once.normalised("slow"), scores_of(RECORDS).normalised("slow"))
    # Where no task has more, one is what there is.
    single = scores_of([each for each in RECORDS if each["seed"] == 0])
    assert single.repeated == ["a", "b"]
    with pytest.raises(UmdqnError, match="finite"):
        estimate(np.array([[np.nan]]), mean)


def test_intervals_are_shown_from_five_runs_on():
    for runs in range(1, 7):
        records = [record("a", "x", seed, 10, float(seed)) for seed in range(runs)]
        shown = summary_table(records)[1][0][-1]
        mean_shown = f"{(runs - 1) / 2:.3f}"
        if runs < 5:
            assert shown == f"{mean_shown} ({runs} run{'s' * (runs > 1)})"
        else:
            assert re.fullmatch(rf"{re.escape(mean_shown)} \[\d\.\d+, \d\.\d+\]", shown)


def test_returns_are_normalised_by_known_scales():
    """CartPole: 21.9 of a random policy is 0, the limit of 500 is 1; `b` has no known scale."""
    records = [
        record(env, agent, 0, 10, score)
        for env, scores in {"CartPole-v1": (500.0, 260.95), "b": (3.0, 5.0)}.items()
        for agent, score in zip(("x", "y"), scores, strict=True)
    ]
    scores = scores_of(records)
    np.testing.assert_allclose(scores.normalised("x"), [[1, 0]])
    np.testing.assert_allclose(scores.normalised("y"), [[0.5, 1]])
    header, rows = scales_table(scores)
    assert header == ["env", "0 is", "1 is"]
    assert rows == [
        [
            "CartPole-v1",
            "21.9: uniformly random policy",
            "500: the time limit, the largest return there is",
        ],
        ["b", "3: worst run here", "5: best run here"],
    ]


def test_every_known_scale_is_of_an_environment_and_says_where_it_comes_from():
    for name, known in reference_scores().items():
        assert name in CATALOGUE
        assert known.low < known.high
        assert len(known.high_source) > 10
