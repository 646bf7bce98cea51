"""The preset `paper` is what the paper's tables say (appendix E, transcribed in data/)."""

import json
from pathlib import Path

import pytest

from umdqn.runs.configure import configure
from umdqn.runs.fields import leaves
from umdqn.runs.presets import PRESETS

TABLES = json.loads((Path(__file__).parent / "data/paper_tables.json").read_text())
FIELDS = {
    "Discount factor": "discount",
    "UMNN hidden": "representation.hidden",
    "Learning rate": "optimiser.learning_rate",
    "Optimiser epsilon": "optimiser.epsilon",
    "Main update frequency": "update_every",
    "Target update frequency": "target.every",
    "Replay memory capacity": "replay.capacity",
    "Batch size": "replay.batch_size",
    "epsilon-greedy start": "exploration.start",
    "epsilon-greedy end": "exploration.end",
    "epsilon-greedy decay": "exploration.decay",
    "epsilon-greedy test": "evaluation.epsilon",
    "Number of z or tau values": "metric.points",
}


@pytest.mark.parametrize("agent", ["umdqn-kl", "umdqn-c", "umdqn-w"])
@pytest.mark.parametrize("env", TABLES["domains"])
def test_preset_paper_is_the_papers_tables(env, agent):
    config = configure(env, agent, "paper")
    values = {path: value for path, _, value in leaves(config)}
    table = TABLES["tables"][TABLES["families"][env]]
    for row, expected in table.items():
        found = values[FIELDS[row]]
        assert (list(found) if isinstance(found, tuple) else found) == expected, row
    assert [config.domain.low, config.domain.high] == TABLES["domains"][env]
    assert set(table) == set(FIELDS)


@pytest.mark.parametrize("env", TABLES["domains"])
def test_preset_tuned_fits_every_environment_of_the_paper(env):
    """It is another one than the paper's, sees the same world, and all of its fields exist."""
    tuned, paper = (configure(env, "umdqn-c", preset) for preset in ("tuned", "paper"))
    assert tuned.optimiser.schedule == "cosine"
    assert tuned.optimiser.learning_rate > paper.optimiser.learning_rate
    assert tuned.discount == paper.discount
    assert tuned.domain is None
    fixed = configure(env, "umdqn-c", "tuned", {"support": "fixed"})
    assert fixed.domain == paper.domain
    family = PRESETS["tuned"][TABLES["families"][env]]
    assert set(family["all"]) <= {path for path, *_ in leaves(tuned)}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("env", TABLES["domains"])
def test_iqn_draws_as_many_fractions_as_its_authors(env, preset):
    """N = N' = K = 32, also where a preset has other points for the rest."""
    config = configure(env, "iqn", preset)
    assert (config.metric.points, config.representation.value_fractions) == (32, 32)


def test_a_configuration_is_called_what_it_is():
    assert configure("grid-world", "iqn").label == "iqn"
    changed = configure("grid-world", "umdqn-c", overrides={"metric": "wasserstein"})
    assert changed.label == "umnn-cdf + wasserstein"
