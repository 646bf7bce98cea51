"""Numerics: sums of ReLUs, quadrature, monotone tables and inversion, each against a referee."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from umdqn.numerics.inversion import invert_monotone
from umdqn.numerics.piecewise import relu_sum
from umdqn.numerics.quadrature import clenshaw_curtis, cumulative_trapezoid, running_sum
from umdqn.numerics.sorting import sort_data
from umdqn.numerics.table import MonotoneTable, unit_nodes


def dense_relu_sum(slope, intercept, weights, intervals):
    nodes = unit_nodes(intervals)
    return jax.nn.relu(nodes[:, None] * slope + intercept) @ weights


def random_units(seed: int, hidden: int):
    """Units with flat slopes and coincident kinks among them."""
    rng = np.random.default_rng(seed)
    slope, intercept, weights = rng.normal(size=(3, hidden)).astype(np.float32)
    slope[rng.random(hidden) < 0.2] = 0.0
    twins = rng.random(hidden) < 0.3
    slope[twins], intercept[twins] = slope[0], intercept[0]
    return jnp.asarray(slope), jnp.asarray(intercept), jnp.asarray(weights)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    hidden=st.sampled_from([1, 2, 17, 40]),
    half=st.sampled_from([1, 50, 104]),
)
def test_relu_sum_equals_the_dense_sum(seed, hidden, half):
    units = random_units(seed, hidden)
    # Terms are of order 1; rounding grows with their number.
    tolerance = 4e-7 * hidden + 4e-6
    np.testing.assert_allclose(
        relu_sum(*units, 2 * half), dense_relu_sum(*units, 2 * half), atol=tolerance, rtol=1e-5
    )


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_relu_sum_has_the_gradient_of_the_dense_sum(seed):
    intervals = 50
    units = random_units(seed, 24)
    # Kinks exactly on a node have two one-sided gradients: move them off.
    slope, intercept, weights = units
    intercept = intercept + 1e-3
    cotangent = np.random.default_rng(seed).normal(size=unit_nodes(intervals).shape)

    def scalar(function):
        return lambda *units: jnp.sum(function(*units, intervals) * cotangent.astype(np.float32))

    ours = jax.grad(scalar(relu_sum), (0, 1, 2))(slope, intercept, weights)
    dense = jax.grad(scalar(dense_relu_sum), (0, 1, 2))(slope, intercept, weights)
    # A flat unit's slope has a gradient in both; elsewhere rounding of 64 nodes' sums.
    for mine, theirs in zip(ours, dense, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=2e-4, rtol=1e-4)


def test_a_flat_unit_by_hand():
    # relu(0 x + 0.5) * 2 + relu(0 x - 0.5) * 3 = 1 everywhere.
    flat = jnp.zeros(2)
    values = relu_sum(flat, jnp.array([0.5, -0.5]), jnp.array([2.0, 3.0]), 10)
    np.testing.assert_allclose(values, 1.0)


def test_a_kink_on_a_node_by_hand():
    # relu(x) and relu(-x) on -1, -0.5, 0, 0.5, 1: together |x|.
    ones = jnp.ones(2)
    values = relu_sum(jnp.array([1.0, -1.0]), jnp.zeros(2), ones, 4)[:5]
    np.testing.assert_allclose(values, [1.0, 0.5, 0.0, 0.5, 1.0], atol=1e-7)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**31), count=st.integers(1, 300))
def test_running_sum_is_the_cumulative_sum(seed, count):
    values = np.random.default_rng(seed).normal(size=count)
    np.testing.assert_allclose(
        running_sum(jnp.asarray(values, jnp.float32)), np.cumsum(values), atol=1e-4
    )


def test_cumulative_trapezoid_of_a_line_is_exact():
    # int_0^x (1 + t) dt = x + x^2 / 2 on 0, 0.5, 1, 1.5.
    values = jnp.array([1.0, 1.5, 2.0, 2.5])
    np.testing.assert_allclose(cumulative_trapezoid(values, 0.5), [0.0, 0.625, 1.5, 2.625])


@pytest.mark.parametrize("degree", [0, 1, 5, 8])
def test_clenshaw_curtis_is_exact_on_polynomials(degree):
    # With n steps the rule integrates degree n exactly: int_{-0.5}^{2} t^d dt in closed form.
    area = clenshaw_curtis(lambda t: t**degree, -0.5, 2.0, steps=8)
    exact = (2.0 ** (degree + 1) - (-0.5) ** (degree + 1)) / (degree + 1)
    assert float(area) == pytest.approx(exact, rel=1e-5)


def test_clenshaw_curtis_refuses_odd_steps():
    with pytest.raises(ValueError, match="even number of steps"):
        clenshaw_curtis(jnp.sin, 0.0, 1.0, steps=7)


def random_table(seed: int, intervals: int = 20) -> MonotoneTable:
    rng = np.random.default_rng(seed)
    slopes = jnp.asarray(np.exp(rng.normal(scale=2.0, size=intervals + 1)), jnp.float32)
    heights = cumulative_trapezoid(slopes, 2 / intervals) + jnp.float32(rng.normal())
    return MonotoneTable(heights, slopes, slopes[0], slopes[-1])


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_a_table_is_increasing_and_its_inverse_inverts_it(seed):
    table = random_table(seed)
    x = jnp.linspace(-1.5, 1.5, 1001)
    y = table(x)
    # Two values may round to the same number where the function rises by less than a few roundings.
    rises, least = np.diff(np.asarray(y)), np.asarray(table.slope(x)).min() * 0.003
    assert np.all(rises > 0) or (np.all(rises >= 0) and least < 4e-7 * np.abs(y).max())
    # Where the slope is small, a rounding error of y is a larger error of x.
    error = np.abs(np.asarray(table.inverse(y) - x))
    rounding = 4e-7 * (1 + np.abs(np.asarray(y)).max())
    assert np.all(error <= rounding / np.asarray(table.slope(x)) + 2e-6)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_a_tables_slope_and_integral_are_exact(seed):
    table = random_table(seed)
    x = np.linspace(-1.4, 1.4, 57) + 0.0031
    rise = jax.vmap(jax.grad(lambda x: table(x)))(jnp.asarray(x, jnp.float32))
    np.testing.assert_allclose(table.slope(jnp.asarray(x, jnp.float32)), rise, rtol=2e-4, atol=1e-5)
    # Simpson's rule is exact on each quadratic piece.
    fine = jnp.linspace(-1, 1, 2 * table.intervals + 1)
    area = integrate.simpson(np.asarray(table(fine), np.float64), x=np.asarray(fine, np.float64))
    assert float(table.integral()) == pytest.approx(area, rel=1e-4, abs=1e-4)


def test_inverse_gradient_is_that_of_the_implicit_function():
    table = random_table(3)
    y = table(jnp.array([-1.2, -0.33, 0.41, 1.3]))
    slopes = table.slope(table.inverse(y))
    np.testing.assert_allclose(jax.vmap(jax.grad(table.inverse))(y), 1 / slopes, rtol=2e-3)


def test_invert_monotone_reaches_float_precision_inside_and_outside_the_bracket():
    y = jnp.array([-1e6, -3.0, 0.0, 1e-3, 8.0, 1e9])
    x = invert_monotone(lambda x: x**3, y, -1.0, 1.0)
    np.testing.assert_allclose(x, np.cbrt(np.asarray(y)), rtol=3e-7, atol=1e-7)


def test_invert_monotone_differentiates_through_value_and_parameters():
    # a x = y has x = y / a: dx/dy = 1 / a and dx/da = -y / a^2.
    def solve(a, y):
        return invert_monotone(jax.tree_util.Partial(lambda a, x: a * x, a), y, -1.0, 1.0)

    da, dy = jax.grad(solve, (0, 1))(jnp.float32(2.0), jnp.float32(3.0))
    assert float(dy) == pytest.approx(0.5)
    assert float(da) == pytest.approx(-0.75)


@settings(max_examples=50, deadline=None)
@given(rows=st.lists(st.lists(st.floats(width=32, allow_nan=False), min_size=5, max_size=5)))
def test_sorted_data_are_numpys(rows):
    values = np.array(rows, np.float32).reshape(-1, 5)
    np.testing.assert_array_equal(sort_data(jnp.asarray(values)), np.sort(values))
