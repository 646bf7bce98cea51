"""Metrics: zero at equality, closed forms on Gaussians, gradients, who trains whom."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from umdqn.laws import REPRESENTATIONS, Dirac, GaussianMixture, bellman, normal
from umdqn.metrics import (
    KL,
    METRICS,
    Cramer,
    Mean,
    Mmd,
    Wasserstein,
)
from umdqn.types import Domain, InvalidField

DOMAIN = Domain(-6.0, 6.0)
FIRST, SECOND = (0.3, 0.8), (1.0, 0.5)


def distance(metric, target, prediction, key=0):
    points = metric.draw(jax.random.key(key), DOMAIN)
    return metric(target, prediction, points, DOMAIN)


def gaussian(mean, std):
    return normal(jnp.float32(mean), std)


@pytest.mark.parametrize("name", ["kl", "cramer"])
@pytest.mark.parametrize("sampling", ["random", "stratified", "fixed"])
def test_zero_at_equality_and_positive_otherwise(name, sampling):
    metric = METRICS[name](points=400, sampling=sampling)
    assert float(distance(metric, gaussian(*FIRST), gaussian(*FIRST))) == pytest.approx(0, abs=1e-6)
    assert float(distance(metric, gaussian(*FIRST), gaussian(*SECOND))) > 0.1


@pytest.mark.parametrize("direction", ["forward", "reverse", "reverse-raw"])
def test_kl_of_two_gaussians(direction):
    (m, s), (n, t) = (FIRST, SECOND) if direction == "forward" else (SECOND, FIRST)
    # KL(N(m, s^2) || N(n, t^2)) = log(t / s) + (s^2 + (m - n)^2) / (2 t^2) - 1 / 2.
    exact = np.log(t / s) + (s**2 + (m - n) ** 2) / (2 * t**2) - 0.5
    metric = KL(points=2_000, sampling="fixed", direction=direction)
    assert float(distance(metric, gaussian(*FIRST), gaussian(*SECOND))) == pytest.approx(
        exact, rel=1e-3
    )


def test_reverse_kl_is_least_at_the_target_even_if_mass_may_leave_the_domain():
    # Over z >= 0 the half of a target N(0, 1) lies outside; q = N(-d, 1) leaves more there.
    shifts = np.array([-0.5, 0.0, 0.5, 3.0])

    def distances(direction: str) -> np.ndarray:
        metric = KL(points=4_000, sampling="fixed", direction=direction)
        points = metric.draw(jax.random.key(0), Domain(0.0, 8.0))
        laws = [gaussian(-d, 1.0) for d in shifts]
        found = [metric(gaussian(0.0, 1.0), law, points, Domain(0.0, 8.0)) for law in laws]
        return np.array(found, np.float64)

    phi, tail = stats.norm.pdf, stats.norm.sf
    # With log(q / p) = -d z - d^2 / 2 and the mean over z >= 0 of q, phi(d) - d sf(d).
    means = phi(shifts) - shifts * tail(shifts)
    raw = -shifts * means - shifts**2 / 2 * tail(shifts)
    np.testing.assert_allclose(distances("reverse-raw"), raw, atol=1e-4)
    outside = 1 - tail(shifts)
    expected = raw + outside * np.log(outside / 0.5)
    np.testing.assert_allclose(distances("reverse"), expected, atol=1e-4)
    assert np.argmin(expected) == 1
    assert np.argmin(raw) == 2


def quantile_law(seed: int, shift=0.0):
    """The law of a fresh quantile function, moved by so many halves of the domain."""
    head = REPRESENTATIONS["umnn-qf"](steepness=0.5).build(
        4, 2, Domain(-2.0, 2.0), jax.random.key(seed)
    )
    law = head.law(jnp.ones(4), jnp.int32(0))
    return eqx.tree_at(lambda law: law.table.heights, law, law.table.heights + shift)


def test_cramer_of_quantile_functions_is_the_integral_over_cdfs():
    first, second, domain = quantile_law(0), quantile_law(1, 0.1), Domain(-2.0, 2.0)
    metric = Cramer(points=2_000, sampling="fixed", root=False)
    found = metric(first, second, metric.draw(jax.random.key(0), domain), domain)
    z = np.linspace(-3, 3, 20_001, dtype=np.float32)
    gap = np.asarray(first.cdf(z) - second.cdf(z), np.float64)
    # Tails hold a ten-thousandth of the mass, which the quantiles leave out.
    assert float(found) == pytest.approx(np.trapezoid(gap**2, z), abs=2e-4)
    assert float(found) > 0.01


@pytest.mark.parametrize("shift", [-30.0, 30.0])
def test_cramer_brings_quantiles_back_from_beyond_the_domain(shift):
    domain, metric = Domain(-2.0, 2.0), Cramer(points=64, root=False)
    points = metric.draw(jax.random.key(0), domain)

    def distance_of(shift):
        return metric(quantile_law(0), quantile_law(1, shift), points, domain)

    # Far away E|X - Y| grows by as much as X moves, and E|X - X'| not at all.
    slope = jax.grad(distance_of)(jnp.float32(shift))
    assert float(slope) == pytest.approx(domain.half_width * np.sign(shift), rel=1e-3)


@pytest.mark.parametrize("root", [True, False])
def test_cramer_of_two_gaussians(root):
    def gap(z):
        return (stats.norm(*FIRST).cdf(z) - stats.norm(*SECOND).cdf(z)) ** 2

    squared, _ = integrate.quad(gap, -6, 6)
    metric = Cramer(points=2_000, sampling="fixed", root=root)
    assert float(distance(metric, gaussian(*FIRST), gaussian(*SECOND))) == pytest.approx(
        np.sqrt(squared) if root else squared, rel=1e-3
    )


@pytest.mark.slow
def test_quantile_regression_is_the_wasserstein_distance_up_to_the_targets_own_spread():
    # With kappa 0, sum_i E_j rho / N -> (1/2) int (G - F)^2-like excess that vanishes at equality:
    # the expected pinball loss is smallest where the prediction's quantiles are the target's.
    metric = Wasserstein(points=1_000, sampling="fixed", kappa=0.0)
    target = gaussian(*FIRST)
    best = float(distance(metric, target, target))
    for mean, std in itertools.product((0.1, 0.3, 0.6), (0.6, 0.8, 1.1)):
        if (mean, std) != FIRST:
            assert float(distance(metric, target, gaussian(mean, std))) > best + 1e-2


@pytest.mark.parametrize("name", METRICS)
def test_gradient_vanishes_at_equality(name):
    metric = METRICS[name](
        points=2_000, sampling="fixed", **({"root": False} if name == "cramer" else {})
    )
    if name == "wasserstein":
        metric = Wasserstein(points=2_000, sampling="fixed", kappa=0.0)
    if name == "mmd":
        metric = Mmd(points=500, sampling="fixed", bandwidths=(0.5, 2.0))
    if name == "mean":
        metric = Mean(kappa=1.0)

    def loss(mean, std):
        return distance(
            metric, gaussian(*FIRST), GaussianMixture(jnp.ones(1), mean[None], std[None])
        )

    at = jax.grad(loss, (0, 1))(jnp.float32(FIRST[0]), jnp.float32(FIRST[1]))
    away = jax.grad(loss, (0, 1))(jnp.float32(FIRST[0] + 0.3), jnp.float32(FIRST[1] + 0.3))
    for near, far in zip(at, away, strict=True):
        assert abs(float(near)) <= 2e-2 * abs(float(far))
    assert abs(float(away[0])) > 0.1


def test_squared_cramer_has_an_unbiased_sample_gradient_and_the_root_has_not():
    """The gradient of the average loss over sampled targets is that of the mixture's loss."""
    samples = [Dirac(jnp.float32(-1.0)), Dirac(jnp.float32(1.5))]
    mixture_cdf = GaussianMixture(
        jnp.array([0.5, 0.5]), jnp.array([-1.0, 1.5]), jnp.array([1e-3, 1e-3])
    )

    def gradients(root):
        metric = Cramer(points=4_000, sampling="fixed", root=root)

        def sampled(mean):
            return sum(distance(metric, s, gaussian(mean, 1.0)) for s in samples) / 2

        def whole(mean):
            return distance(metric, mixture_cdf, gaussian(mean, 1.0))

        return [float(jax.grad(f)(jnp.float32(0.8))) for f in (sampled, whole)]

    sampled, whole = gradients(root=False)
    assert sampled == pytest.approx(whole, rel=1e-2)
    sampled, whole = gradients(root=True)
    assert sampled != pytest.approx(whole, rel=0.2)


def test_terminal_laws_are_those_of_appendix_c():
    reward, domain = jnp.float32(0.4), Domain(-2.0, 2.0)
    law = gaussian(0.0, 1.0)
    narrow = KL(points=200).terminal(law, reward, domain)
    assert float(narrow.std) == pytest.approx(4.0 / 200)
    assert float(narrow.mean) == pytest.approx(0.4)
    step = Cramer(points=200).terminal(law, reward, domain)
    np.testing.assert_allclose(step.cdf(jnp.array([0.35, 0.4, 0.45])), [0, 0.5, 1], atol=1e-6)
    assert Wasserstein().terminal(law, reward, domain) is None
    constant = bellman(law, reward, jnp.float32(0.0))
    np.testing.assert_allclose(constant.quantile(jnp.array([0.01, 0.99])), 0.4)


@pytest.mark.parametrize(
    ("metric", "field"),
    [(lambda: Wasserstein(kappa=-1.0), "kappa"), (lambda: KL(points=0), "points")],
)
def test_impossible_metrics_are_refused(metric, field):
    with pytest.raises(InvalidField, match=field):
        metric()


PAIRS = [
    (name, representation)
    for name, representation in itertools.product(METRICS, REPRESENTATIONS)
    if METRICS[name]().serves(REPRESENTATIONS[representation])
]


def test_which_metric_trains_which_representation():
    umnns, quantiles = (
        {"umnn-pdf", "umnn-cdf", "umnn-qf"},
        {
            "quantiles",
            "non-crossing-quantiles",
            "implicit-quantiles",
            "proposed-quantiles",
        },
    )
    served = {name: {r for n, r in PAIRS if n == name} for name in METRICS}
    assert served == {
        "kl": umnns | {"categorical"},
        "cramer": umnns | {"categorical"},
        "wasserstein": umnns | quantiles,
        "mmd": umnns | quantiles,
        "mean": set(REPRESENTATIONS),
    }
    assert not KL(direction="reverse").serves(REPRESENTATIONS["categorical"])


@pytest.mark.parametrize(("name", "representation"), PAIRS)
@pytest.mark.parametrize("sampling", ["random", pytest.param("fixed", marks=pytest.mark.slow)])
def test_metrics_train_representations(name, representation, sampling):
    """Finite loss and gradient for ordinary and terminal targets; none at the ends of [0, 1]."""
    metric, domain = METRICS[name](points=64, sampling=sampling), Domain(-2.0, 2.0)
    head = REPRESENTATIONS[representation]().build(8, 2, domain, jax.random.key(0))
    features = jnp.where(jnp.arange(8) % 2 == 0, 1.0, -0.5)

    def loss(head, discount):
        reward = jnp.float32(0.3)
        following = head.law(-features, jnp.int32(0))
        target = bellman(following, reward, discount, metric.terminal(following, reward, domain))
        points = metric.draw(jax.random.key(1), domain)
        target = jax.lax.stop_gradient(target)
        return metric(target, head.law(features, jnp.int32(1)), points, domain)

    differentiate = eqx.filter_jit(eqx.filter_value_and_grad(loss))
    for discount in (0.5, 0.0):
        value, gradient = differentiate(head, jnp.float32(discount))
        assert np.isfinite(value)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
        assert any(np.abs(leaf).max() > 0 for leaf in jax.tree.leaves(gradient))


@pytest.mark.parametrize("representation", ["umnn-pdf", "umnn-cdf", "umnn-qf"])
def test_kl_moves_a_law_that_has_missed_its_target(representation):
    domain = Domain(-2.0, 2.0)
    head = REPRESENTATIONS[representation]().build(8, 1, domain, jax.random.key(0))
    metric = KL(points=200, sampling="fixed")
    points = metric.draw(jax.random.key(1), domain)

    def loss(head):
        prediction = head.law(jnp.ones(8), jnp.int32(0))
        return metric(gaussian(1.5, 0.02), prediction, points, domain)

    value, gradient = eqx.filter_jit(eqx.filter_value_and_grad(loss))(head)
    assert float(value) < 1e4
    assert float(jnp.linalg.norm(gradient.umnn.conditioner.layers[-1].bias)) > 1.0
