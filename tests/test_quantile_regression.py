"""Quantile regression: the sum over pairs, by hand and against another implementation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rlax
from hypothesis import given, settings
from hypothesis import strategies as st

from umdqn.laws.support import Support
from umdqn.metrics.quantile_huber import inside, paired_quantile_huber, quantile_huber
from umdqn.representations import REPRESENTATIONS
from umdqn.specs import Domain


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**31), kappa=st.sampled_from([0.0, 0.02, 0.3, 1.0, 50.0]))
def test_quantile_huber_is_the_sum_over_pairs(seed, kappa):
    """Three ways: prefix sums, pair by pair, and RLax's own loss for equal weights."""
    rng = np.random.default_rng(seed)
    quantiles, fractions = rng.normal(size=30), rng.uniform(size=30)
    targets, weights = np.sort(rng.normal(size=25)), rng.dirichlet(np.ones(25))
    arguments = [jnp.asarray(a, jnp.float32) for a in (quantiles, fractions, targets, weights)]
    ours, gradient = jax.value_and_grad(quantile_huber)(*arguments, kappa)
    theirs, referee = jax.value_and_grad(paired_quantile_huber)(*arguments, kappa)
    even = jnp.full(25, 1 / 25)
    # RLax does not divide by kappa, as the paper does.
    reference = rlax.quantile_regression_loss(*arguments[:3], kappa) / (kappa or 1.0)
    for loss in (quantile_huber, paired_quantile_huber):
        assert float(loss(*arguments[:3], even, kappa)) == pytest.approx(
            float(reference), rel=1e-4, abs=1e-4
        )
    assert float(ours) == pytest.approx(float(theirs), rel=1e-4, abs=1e-4)
    np.testing.assert_allclose(gradient, referee, atol=1e-4 if kappa != 0.02 else 1e-3)


def test_quantile_huber_by_hand():
    # One quantile 0 at fraction 0.25, targets -2, 0.5, 3, kappa 1:
    # 0.75 * (2 - 0.5), 0.25 * 0.5^2 / 2, 0.25 * (3 - 0.5), averaged.
    arguments = jnp.zeros(1), jnp.array([0.25]), jnp.array([-2.0, 0.5, 3.0])
    for loss in (quantile_huber, paired_quantile_huber):
        even = loss(*arguments, jnp.full(3, 1 / 3), 1.0)
        assert float(even) == pytest.approx((0.75 * 1.5 + 0.25 * 0.125 + 0.25 * 2.5) / 3)
        uneven = loss(*arguments, jnp.array([0.2, 0.7, 0.1]), 1.0)
        assert float(uneven) == pytest.approx(0.2 * 1.125 + 0.7 * 0.03125 + 0.1 * 0.625)


def test_fractions_stay_off_the_ends():
    ends = jnp.array([0.0, 0.5, 1.0])
    np.testing.assert_array_less(0.0, inside(ends))
    np.testing.assert_array_less(inside(ends), 1.0)


def test_non_crossing_quantiles_never_cross():
    """Not by a rounding error either, however sharp the shares."""
    head = REPRESENTATIONS["non-crossing-quantiles"]().build(8, 4, jax.random.key(0))
    support = Support.of(Domain(-2.0, 2.0))
    features = 40 * jax.random.normal(jax.random.key(1), (100, 8))
    positions = np.asarray(jax.vmap(lambda x: head.laws(x, support).positions)(features))
    assert np.all(np.diff(positions) >= 0)
    assert np.all(positions[..., -1] > positions[..., 0])
