"""Decisions, each in closed form on Gaussian mixtures."""

import jax.numpy as jnp
import numpy as np
import pytest

from umdqn.decisions import DECISIONS
from umdqn.laws.closed import GaussianMixture

WEIGHTS = np.array([[[0.3, 0.7], [0.5, 0.5]], [[1.0, 0.0], [0.9, 0.1]]])
MEANS = np.array([[[-1.0, 2.0], [0.0, 3.0]], [[0.5, 9.0], [1.0, -4.0]]])

# Of two states with two actions each: 0.3 * -1 + 0.7 * 2, and so on.
SCORES = {"mean": [[1.1, 1.5], [0.5, 0.5]]}


@pytest.mark.parametrize("name", DECISIONS)
def test_scores_in_closed_form(name):
    laws = GaussianMixture(
        jnp.asarray(WEIGHTS, jnp.float32), jnp.asarray(MEANS, jnp.float32), jnp.full((2, 2, 2), 0.4)
    )
    scores = DECISIONS[name]().scores(laws)
    np.testing.assert_allclose(scores, SCORES[name], atol=1e-6)
    one = DECISIONS[name]().scores(laws[0][1])
    assert float(one) == pytest.approx(SCORES[name][0][1], abs=1e-6)
