"""Every algorithm learns true laws: minutes of training, run with `make test-slow`."""

import pytest
from scipy import stats

from umdqn.agents.algorithms import ALGORITHMS
from umdqn.analysis.reports import accuracy_report
from umdqn.runs.configure import configure
from umdqn.runs.start import train_config


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["umdqn-kl", "umdqn-c", "umdqn-w"])
def test_tuned_laws_are_true(agent, tmp_path):
    """A seventh of the tuned training already beats the paper preset's bar of 0.06."""
    config = configure("grid-world", agent, "tuned", {"steps": 40_000, "seeds": 2})
    report = accuracy_report(train_config(config, tmp_path / "run"))
    assert report["w1"] < 0.03
    assert report["optimal_actions"] >= 45


@pytest.mark.slow
@pytest.mark.parametrize("agent", [name for name in ALGORITHMS if not name.startswith("umdqn")])
def test_baselines_find_the_optimal_policy(agent, tmp_path):
    config = configure("grid-world", agent, "tuned", {"steps": 30_000, "seeds": 2})
    report = accuracy_report(train_config(config, tmp_path / "run"))
    assert report["mean_error"] < 0.05
    assert report["optimal_actions"] >= 45


@pytest.mark.slow
def test_both_loops_learn_the_same_laws(tmp_path):
    """Equally true ones, as far as four seeds can tell: Welch's test at one in a thousand."""
    distances = {}
    for loop in ("compiled", "host"):
        fields = {"steps": 20_000, "seeds": 4, "loop": loop}
        run = train_config(configure("grid-world", "umdqn-c", "tuned", fields), tmp_path / loop)
        distances[loop] = [seed["w1"] for seed in accuracy_report(run)["seeds"].values()]
    assert max(map(max, distances.values())) < 0.05
    assert stats.ttest_ind(*distances.values(), equal_var=False).pvalue > 1e-3
