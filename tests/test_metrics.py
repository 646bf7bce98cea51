"""Metrics: zero at equality, closed forms on Gaussians, gradients, who trains whom."""

import itertools
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from law_cases import TrainedMixture, gaussian
from quick import quick
from umdqn.agents.algorithms import ALGORITHMS
from umdqn.errors import InvalidField
from umdqn.laws.bellman import bellman
from umdqn.laws.closed import Dirac, GaussianMixture
from umdqn.laws.support import Support
from umdqn.metrics import METRICS
from umdqn.metrics.cramer import Cramer
from umdqn.metrics.kl import KL
from umdqn.metrics.mean import Mean
from umdqn.metrics.mmd import Mmd
from umdqn.metrics.wasserstein import Wasserstein
from umdqn.representations import REPRESENTATIONS
from umdqn.representations.discrete import Categorical
from umdqn.representations.umnn import UmnnCdf, UmnnQf
from umdqn.specs import Domain

SUPPORT = Support.of(Domain(-6.0, 6.0))
NARROW = Support.of(Domain(-2.0, 2.0))
FIRST, SECOND = (0.3, 0.8), (1.0, 0.5)


@eqx.filter_jit
def distance(metric, target, prediction, support=SUPPORT, kind=UmnnCdf):
    """Compare two laws as if the prediction were of a kind of representation."""
    comparison = metric.comparison(kind)
    return comparison(target, prediction, comparison.draw(jax.random.key(0)), support)


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
        support, target = Support.of(Domain(0.0, 8.0)), gaussian(0.0, 1.0)
        found = [distance(metric, target, gaussian(-d, 1.0), support) for d in shifts]
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


@eqx.filter_jit
def quantile_law(seed, shift=0.0):
    """The law of a fresh quantile function, moved by so many halves of the domain."""
    head = UmnnQf(steepness=0.5).build(4, 2, jax.random.key(seed))
    law = head.law(jnp.ones(4), jnp.int32(0), NARROW)
    return eqx.tree_at(lambda law: law.table.heights, law, law.table.heights + shift)


def test_cramer_of_quantile_functions_is_the_integral_over_cdfs():
    first, second = quantile_law(jnp.int32(0)), quantile_law(jnp.int32(1), 0.1)
    metric = Cramer(points=2_000, sampling="fixed", root=False)
    found = distance(metric, first, second, NARROW, UmnnQf)
    z = np.linspace(-3, 3, 20_001, dtype=np.float32)
    gap = np.asarray(first.cdf(z) - second.cdf(z), np.float64)
    # Tails hold a ten-thousandth of the mass, which the quantiles leave out.
    assert float(found) == pytest.approx(np.trapezoid(gap**2, z), abs=2e-4)
    assert float(found) > 0.01


@pytest.mark.parametrize("shift", [-30.0, 30.0])
def test_cramer_brings_quantiles_back_from_beyond_the_domain(shift):
    metric = Cramer(points=64, root=False)

    def distance_of(shift):
        return distance(
            metric, quantile_law(jnp.int32(0)), quantile_law(jnp.int32(1), shift), NARROW, UmnnQf
        )

    # Far away E|X - Y| grows by as much as X moves, E|X - X'| not at all; half the support is 2.
    slope = jax.grad(distance_of)(jnp.float32(shift))
    assert float(slope) == pytest.approx(2.0 * np.sign(shift), rel=1e-3)


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
            metric, gaussian(*FIRST), TrainedMixture(jnp.ones(1), mean[None], std[None])
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
    reward = jnp.float32(0.4)

    def terminal(metric):
        return metric.comparison(UmnnCdf).terminal(reward, NARROW)

    narrow = terminal(KL(points=200))
    assert float(narrow.std) == pytest.approx(4.0 / 200)
    assert float(narrow.mean) == pytest.approx(0.4)
    step = terminal(Cramer(points=200))
    np.testing.assert_allclose(step.cdf(jnp.array([0.35, 0.4, 0.45])), [0, 0.5, 1], atol=1e-6)
    assert terminal(Wasserstein()) is None
    constant = bellman(gaussian(0.0, 1.0), reward, jnp.float32(0.0))
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
    if METRICS[name]().comparison(REPRESENTATIONS[representation]) is not None
]


# Those of the algorithms.
TRAINED = {(a.metric, a.representation) for a in ALGORITHMS.values()}


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
        "cramer": umnns | quantiles | {"categorical"},
        "wasserstein": umnns | quantiles,
        "mmd": umnns | quantiles,
        "mean": set(REPRESENTATIONS),
    }
    assert KL(direction="reverse").comparison(Categorical) is None


@pytest.mark.parametrize(("name", "representation"), quick(PAIRS, TRAINED))
@pytest.mark.parametrize("sampling", ["random", pytest.param("fixed", marks=pytest.mark.slow)])
def test_metrics_train_representations(name, representation, sampling):
    """Finite loss and gradient for ordinary and terminal targets; none at the ends of [0, 1]."""
    kind = REPRESENTATIONS[representation]
    comparison = METRICS[name](points=64, sampling=sampling).comparison(kind)
    head = jax.jit(partial(kind().build, 8, 2))(jax.random.key(0))
    features = jnp.where(jnp.arange(8) % 2 == 0, 1.0, -0.5)

    def loss(head, discount):
        reward = jnp.float32(0.3)
        following = head.law(-features, jnp.int32(0), NARROW)
        target = bellman(following, reward, discount, comparison.terminal(reward, NARROW))
        points = comparison.draw(jax.random.key(1))
        target = jax.lax.stop_gradient(target)
        return comparison(target, head.law(features, jnp.int32(1), NARROW), points, NARROW)

    differentiate = eqx.filter_jit(eqx.filter_value_and_grad(loss))
    for discount in (0.5, 0.0):
        value, gradient = differentiate(head, jnp.float32(discount))
        assert np.isfinite(value)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
        assert any(np.abs(leaf).max() > 0 for leaf in jax.tree.leaves(gradient))


@pytest.mark.parametrize("representation", ["umnn-pdf", "umnn-cdf", "umnn-qf"])
def test_kl_moves_a_law_that_has_missed_its_target(representation):
    kind = REPRESENTATIONS[representation]
    head = jax.jit(partial(kind().build, 8, 1))(jax.random.key(0))
    metric = KL(points=200, sampling="fixed")

    def loss(head):
        prediction = head.law(jnp.ones(8), jnp.int32(0), NARROW)
        return distance(metric, gaussian(1.5, 0.02), prediction, NARROW, kind)

    value, gradient = eqx.filter_jit(eqx.filter_value_and_grad(loss))(head)
    assert float(value) < 1e4
    assert float(jnp.linalg.norm(gradient.umnn.conditioner.layers[-1].bias)) > 1.0
