"""Representations: heads, the views that they give, and supports that move."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from law_cases import SUPPORT, Compiled, represented, sharp_head
from umdqn.laws.atoms import midpoints
from umdqn.laws.bellman import Affine
from umdqn.laws.support import Support
from umdqn.representations import REPRESENTATIONS
from umdqn.specs import Domain


@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_a_head_gives_each_actions_law(name):
    head = jax.jit(partial(REPRESENTATIONS[name]().build, 4, 3))(jax.random.key(1))
    features, z = jax.random.normal(jax.random.key(2), (4,)), jnp.linspace(-2, 4, 11)

    @eqx.filter_jit
    def views(law):
        return law.cdf(z), law.mean

    cdfs, means = views(eqx.filter_jit(lambda: head.laws(features, SUPPORT))())
    law_of = eqx.filter_jit(lambda action: head.law(features, action, SUPPORT))
    for action in range(3):
        cdf, mean = views(law_of(jnp.int32(action)))
        np.testing.assert_allclose(cdfs[action], cdf, atol=1e-5)
        np.testing.assert_allclose(means[action], mean, atol=1e-4)


@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_laws_have_the_views_that_their_representation_gives(name):
    law, gives = represented(name), REPRESENTATIONS[name].gives
    assert "mean" in gives
    assert hasattr(law, "claims") == ("quantile" in gives)
    assert hasattr(law, "log_masses") == ("masses" in gives)
    if "quantile" in gives:
        fractions, quantiles = law.claims(midpoints(16))
        assert fractions.shape == quantiles.shape
        assert np.all((np.asarray(fractions) > 0) & (np.asarray(fractions) < 1))
        # The claims at the law's own fractions, or at those asked for.
        assert fractions.shape == (16,) or fractions.shape == law.positions.shape
    if "masses" in gives:
        assert float(jnp.sum(jnp.exp(law.log_masses))) == pytest.approx(1, abs=1e-5)
        expected = np.linspace(-3.0, 5.0, law.log_masses.shape[0])
        np.testing.assert_allclose(law.positions, expected, atol=1e-6)


@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_the_views_given_depend_on_the_parameters(name):
    """Each has a finite gradient other than zero."""
    head, features = sharp_head(name)
    z = jnp.linspace(-1.9, 3.9, 9)
    read = {
        "mean": lambda law: law.mean,
        "density": lambda law: jnp.sum(jnp.tanh(law.log_pdf(z))),
        "cdf": lambda law: jnp.sum(law.cdf(z)),
        "masses": lambda law: law.log_masses[0],
        "quantile": lambda law: jnp.sum(law.claims(midpoints(8))[1]),
    }
    for view in REPRESENTATIONS[name].gives:

        def scalar(head, view=view):
            return read[view](head.law(features, jnp.int32(1), SUPPORT))

        gradient = jax.tree.leaves(eqx.filter_jit(eqx.filter_grad(scalar))(head))
        assert all(np.isfinite(leaf).all() for leaf in gradient), view
        assert any(np.abs(leaf).max() > 0 for leaf in gradient), view


@pytest.mark.parametrize("name", ["umnn-pdf", "umnn-cdf", "umnn-qf", "categorical"])
def test_moving_the_support_moves_the_return_and_compiles_nothing(name):
    head, features = sharp_head(name)
    moved = Support.of(Domain(10.0, 14.0))
    # Between the atoms of the categorical law, where rounding does not decide.
    unit, fractions = jnp.linspace(-0.987, 0.983, 23), jnp.linspace(0.0513, 0.9427, 11)
    traces = []

    @eqx.filter_jit
    def views(head, support):
        traces.append(support)
        law = head.law(features, jnp.int32(1), support)
        z = support.from_unit(unit)
        return law, law.cdf(z), law.log_pdf(z), law.quantile(fractions), law.mean, law.variance

    before, *_ = views(head, SUPPORT)
    _, cdf, log_pdf, quantile, mean, variance = views(head, moved)
    assert len(traces) == 1
    # [-3, 5] becomes [10, 14]: z -> 11.5 + z / 2.
    expected = Compiled(Affine(before, jnp.float32(11.5), jnp.float32(0.5)))
    z = moved.from_unit(unit)
    np.testing.assert_allclose(cdf, expected.cdf(z), atol=2e-5)
    np.testing.assert_allclose(log_pdf, expected.log_pdf(z), atol=1e-3, rtol=1e-4)
    np.testing.assert_allclose(quantile, expected.quantile(fractions), atol=1e-5)
    assert float(mean) == pytest.approx(float(expected.mean), abs=1e-5)
    assert float(variance) == pytest.approx(float(expected.variance), rel=1e-4, abs=1e-6)
