"""The UMNN: fast path, dense path and the paper's quadrature agree, in value and in gradient."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate

from umdqn.networks.umnn import Umnn

FEATURES, ACTIONS, INTERVALS = 6, 3, 200


def umnn(hidden=(32,), seed=0, sharpness=8.0) -> tuple[Umnn, jax.Array]:
    """A network with kinks all over the domain, far sharper than at initialisation."""
    key = jax.random.key(seed)
    network = Umnn(FEATURES, ACTIONS, hidden, INTERVALS, sharpness, 1.0, key)
    bias = jax.random.normal(jax.random.fold_in(key, 1), network.context.bias.shape)
    network = eqx.tree_at(lambda n: n.context.bias, network, bias)
    return network, jax.random.normal(jax.random.fold_in(key, 2), (FEATURES,))


def adaptive(network: Umnn, features: jax.Array, x: float, action: int) -> float:
    """G by adaptive quadrature in double precision, from the dense integrand's weights."""
    point = np.asarray(network.point, np.float64)
    context = np.asarray(network.context(features), np.float64)
    weights = np.asarray(network.output.weight, np.float64)[:, action]
    bias = float(network.output.bias[action])
    offset, scale = np.split(np.asarray(network.conditioner(features), np.float64), 2)

    def integrand(t: float) -> float:
        logit = np.maximum(point * t + context, 0.0) @ weights + bias
        return (logit + 1 if logit > 0 else np.exp(logit)) + 1e-6

    kinks = np.sort(-context / point)
    inside = [kink for kink in kinks if min(0, x) < kink < max(0, x)]
    area, _ = integrate.quad(integrand, 0.0, x, points=inside or None, limit=500, epsabs=1e-10)
    return np.exp(scale[action]) * area + offset[action]


def test_the_table_is_the_adaptive_integral():
    network, features = umnn()
    table = network.table(features, jnp.int32(1))
    for x in np.linspace(-1, 1, 9):
        # The trapezoid rule on 200 cells; its error falls with the square of their number.
        assert float(table(jnp.float32(x))) == pytest.approx(
            adaptive(network, features, x, 1), abs=3e-4
        )


def test_clenshaw_curtis_is_the_adaptive_integral():
    network, features = umnn(sharpness=1.0)
    for x in (-0.8, 0.3, 1.0):
        exact = [adaptive(network, features, x, action) for action in range(ACTIONS)]
        np.testing.assert_allclose(network.exact(jnp.float32(x), features), exact, atol=2e-4)


def test_tables_hold_each_actions_table():
    network, features = umnn()
    tables = network.tables(features)
    for action in range(ACTIONS):
        one = network.table(features, jnp.int32(action))
        np.testing.assert_allclose(tables.heights[action], one.heights, atol=1e-5)
        np.testing.assert_allclose(tables.slopes[action], one.slopes, rtol=1e-5)


def test_deeper_integrands_take_the_dense_path_and_agree_with_the_referee():
    network, features = umnn(hidden=(16, 12))
    table = network.table(features, jnp.int32(2))
    for x in (-1.0, -0.4, 0.7):
        exact = network.exact(jnp.float32(x), features, steps=400)[2]
        assert float(table(jnp.float32(x))) == pytest.approx(float(exact), abs=5e-4)


def test_the_dense_and_the_linear_path_are_one_function():
    # An identity layer of ReLUs above ReLUs changes nothing, but takes the dense path.
    network, features = umnn(hidden=(16,))
    layer = eqx.tree_at(
        lambda layer: (layer.weight, layer.bias), network.context, (jnp.eye(16), jnp.zeros(16))
    )
    deep = eqx.tree_at(
        lambda n: n.deeper, network, (layer,), is_leaf=lambda x: isinstance(x, tuple) and not x
    )
    linear, dense = network.tables(features), deep.tables(features)
    np.testing.assert_allclose(linear.slopes, dense.slopes, rtol=2e-5)
    np.testing.assert_allclose(linear.heights, dense.heights, atol=2e-5)


def test_gradients_are_the_referees():
    network, features = umnn(sharpness=2.0)
    points = jnp.array([-0.9, -0.21, 0.33, 0.87])

    def fast(network):
        table = network.table(features, jnp.int32(0))
        return jnp.sum(jnp.tanh(table(points)))

    def referee(network):
        values = jax.vmap(lambda x: network.exact(x, features, steps=400)[0])(points)
        return jnp.sum(jnp.tanh(values))

    fast_gradient, exact_gradient = (
        eqx.filter_grad(fast)(network),
        eqx.filter_grad(referee)(network),
    )
    leaves = zip(jax.tree.leaves(fast_gradient), jax.tree.leaves(exact_gradient), strict=True)
    for fast_leaf, exact_leaf in leaves:
        size = float(jnp.abs(exact_leaf).max())
        np.testing.assert_allclose(fast_leaf, exact_leaf, atol=1e-3 * size + 1e-6)


def test_cdfs_of_a_trained_network_are_within_1e_4_of_an_adaptive_integral(small_run):
    """The issue's bar on quadrature, on the support of a network that has been trained."""
    learned = small_run.learned[0]
    network = small_run.agent.network(learned.params)
    for state, action in (((2, 6), 0), ((3, 4), 1), ((0, 0), 3)):
        observation = jnp.asarray(state, jnp.float32)
        law = network.law(observation, jnp.int32(action), learned.unit)
        features = network.features(observation)
        for x in np.linspace(-1, 1, 21):
            exact = 1 / (1 + np.exp(-adaptive(network.head.umnn, features, x, action)))
            z = law.support.from_unit(jnp.float32(x))
            assert float(law.cdf(z)) == pytest.approx(exact, abs=1e-4)
