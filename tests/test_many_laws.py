"""Laws on leading axes: every view equals the views one by one; indexing and iteration."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from law_cases import CONTINUOUS, DISCRETE, SUPPORT, Compiled, represented, sharp_head
from quick import quick
from umdqn.laws.law import Law
from umdqn.representations import REPRESENTATIONS

POINTS = jnp.array([[-2.03, -0.61, 0.07], [0.53, 1.41, 4.09]])
# Fractions that no atom reaches exactly, where rounding would decide.
FRACTIONS = jnp.array([[0.0513, 0.2037, 0.4119], [0.5527, 0.8181, 0.9713]])


@eqx.filter_jit
def views(law: Law) -> dict[str, jax.Array]:
    return {
        **{name: getattr(law, name)(POINTS) for name in ("cdf", "log_pdf", "spread_cdf")},
        "quantile": law.quantile(FRACTIONS),
        "mean": law.mean,
        "variance": law.variance,
        "cvar": law.cvar(0.3),
    }


def stack(laws: list[Law]) -> Law:
    """Put laws of a kind on a leading axis; the laws of IQN share a network until settled."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *(law.settled() for law in laws))


@pytest.mark.parametrize("count", quick([3, 4], [4]))
@pytest.mark.parametrize("name", CONTINUOUS | DISCRETE)
def test_views_of_many_laws_are_the_views_one_by_one(name, count):
    laws = [(CONTINUOUS | DISCRETE)[name](seed) for seed in range(count)]
    many = stack(laws)
    shape = (2, 2) if count == 4 else (3,)
    if count == 4:
        many = jax.tree.map(lambda leaf: leaf.reshape(shape + leaf.shape[1:]), many)
    assert many.shape == shape
    found, expected = views(many), [views(law) for law in laws]
    for view, values in found.items():
        points = POINTS.shape if view in {"cdf", "log_pdf", "spread_cdf", "quantile"} else ()
        assert values.shape == shape + points, view
        one_by_one = jnp.stack([each[view] for each in expected]).reshape(values.shape)
        # Densities of implicit quantiles are quotients of small differences.
        accuracy = 2e-4 if (name, view) == ("implicit-quantiles", "log_pdf") else 2e-5
        np.testing.assert_allclose(
            values, one_by_one, rtol=accuracy, atol=accuracy / 10, err_msg=view
        )


@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_views_of_all_actions_are_those_of_each(name):
    head, features = sharp_head(name)
    laws = head.laws(features, SUPPORT)
    assert laws.shape == (2,)
    found = views(laws)
    for action, law in enumerate(laws):
        for view, values in views(law).items():
            np.testing.assert_allclose(
                found[view][action], values, rtol=2e-5, atol=2e-6, err_msg=view
            )


@pytest.mark.parametrize("points", [jnp.float32(0.4), jnp.linspace(0.1, 0.9, 5)])
def test_samples_and_points_of_any_shape(points):
    laws = stack([represented("umnn-cdf", seed) for seed in range(3)])
    assert Compiled(laws).quantile(points).shape == (3, *points.shape)
    samples = Compiled(laws).sample(jax.random.key(0), 7)
    assert samples.shape == (3, 7)
    assert len(np.unique(np.asarray(samples))) == 21


@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_samples_of_all_actions(name):
    """Means of 4,000 samples of every law, within five standard errors."""
    head, features = sharp_head(name)
    laws = head.laws(features, SUPPORT)
    samples = laws.sample(jax.random.key(0), 4_000)
    assert samples.shape == (2, 4_000)
    error = np.maximum(5 * np.asarray(laws.std) / 4_000**0.5, 1e-5)
    assert (np.abs(samples.mean(axis=1) - laws.mean) < error).all()


@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_laws_are_indexed_and_iterated_like_a_sequence(name):
    head, features = sharp_head(name)
    laws = head.laws(features, SUPPORT)
    assert len(laws) == 2
    for index in (2, -3, np.int64(2), np.int32(-3)):
        with pytest.raises(IndexError, match=f"law {index} of 2"):
            laws[index]
    means = np.asarray(laws.mean)
    np.testing.assert_allclose([law.mean for law in laws], means, rtol=1e-5, atol=1e-6)
    assert laws[0].shape == laws[np.int64(-1)].shape == ()
    np.testing.assert_allclose(laws[-1].mean, means[1], rtol=1e-5, atol=1e-6)
    assert laws[1:].shape == (1,)
    with pytest.raises(TypeError):
        len(laws[0])
    with pytest.raises(TypeError):
        iter(laws[0])
