"""The contract of laws, for every member of every table, and the Bellman push-forward."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from umdqn.laws import (
    REPRESENTATIONS,
    Affine,
    Atoms,
    Dirac,
    Either,
    GaussianMixture,
    Law,
    Uniform,
    bellman,
    midpoints,
    normal,
)
from umdqn.types import Domain

DOMAIN = Domain(-3.0, 5.0)


def represented(name: str, seed: int = 0) -> Law:
    """A law from a freshly initialised, sharpened head."""
    sharp = {"point_scale": 20.0} if name.startswith("umnn") else {}
    size = 4 if sharp else 32
    head = REPRESENTATIONS[name](**sharp).build(size, 2, DOMAIN, jax.random.key(seed))
    return head.law(3 * jax.random.normal(jax.random.key(seed + 1), (size,)), jnp.int32(1))


def mixture() -> GaussianMixture:
    return GaussianMixture(
        jnp.array([0.3, 0.5, 0.2]), jnp.array([-1.0, 0.5, 2.0]), jnp.array([0.2, 0.6, 0.1])
    )


DISCRETE = {name: (lambda name=name: represented(name)) for name in REPRESENTATIONS}
UMNNS = {name: DISCRETE.pop(name) for name in ("umnn-pdf", "umnn-cdf", "umnn-qf")}
CONTINUOUS = UMNNS | {
    "mixture": mixture,
    "normal": lambda: normal(jnp.float32(0.5), 0.3),
    "uniform": lambda: Uniform(jnp.float32(-0.5), jnp.float32(2.0)),
    "affine": lambda: Affine(represented("umnn-cdf"), jnp.float32(0.7), jnp.float32(0.5)),
    "either": lambda: Either(jnp.bool_(False), Dirac(jnp.float32(1.0)), mixture()),
}
DISCRETE |= {
    "atoms": lambda: Atoms(jnp.array([0.5, -1.0, 3.0, -1.0]), jnp.array([0.1, 0.2, 0.3, 0.4])),
    "affine-atoms": lambda: Affine(represented("quantiles"), jnp.float32(0.7), jnp.float32(0.5)),
    "affine-point": lambda: Affine(mixture(), jnp.float32(0.7), jnp.float32(0.0)),
}


class Compiled:
    """A law whose views are compiled, for speed; one test holds them equal to the eager ones."""

    def __init__(self, law: Law):
        self.law = law

    def __getattr__(self, name):
        if isinstance(getattr(type(self.law), name), property):
            return _property(self.law, name)
        return partial(_method, self.law, name)


@eqx.filter_jit
def _property(law, name):
    return getattr(law, name)


@eqx.filter_jit
def _method(law, name, *arguments):
    return getattr(law, name)(*arguments)


@pytest.fixture(scope="module", params=CONTINUOUS | DISCRETE)
def law(request) -> Compiled:
    return Compiled((CONTINUOUS | DISCRETE)[request.param]())


@pytest.fixture(scope="module", params=CONTINUOUS)
def continuous(request) -> Compiled:
    return Compiled(CONTINUOUS[request.param]())


@pytest.fixture(scope="module", params=DISCRETE)
def discrete(request) -> Compiled:
    return Compiled(DISCRETE[request.param]())


def make_support(law: Compiled) -> np.ndarray:
    low, high = np.asarray(law.quantile(jnp.array([1e-5, 1 - 1e-5])))
    return np.linspace(low, max(high, low + 1e-3), 20_001)


def test_cdf_rises_from_0_to_1(law):
    low, high = np.asarray(law.quantile(jnp.array([1e-6, 1 - 1e-6])))
    z = jnp.linspace(low - 1, high + 1, 2_001)
    cdf = np.asarray(law.cdf(z))
    # Two units in the last place of a float32 probability.
    assert np.all(np.diff(cdf) >= -2.4e-7)
    assert cdf[0] == pytest.approx(0, abs=2e-6)
    assert cdf[-1] == pytest.approx(1, abs=2e-6)


def test_pdf_integrates_to_1_and_is_the_slope_of_the_cdf(continuous):
    z = make_support(continuous)
    pdf, cdf = (
        np.asarray(view(jnp.asarray(z, jnp.float32)), np.float64)
        for view in (continuous.pdf, continuous.cdf)
    )
    assert np.trapezoid(pdf, z) == pytest.approx(1, abs=2e-3)
    # Over 40 cells at a time, so that the rounding of float32 probabilities does not show. Where
    # the density jumps (at the bounds of a domain) a trapezoid is off by half the jump.
    starts, cells = np.arange(0, 20_000, 40), np.diff(z)
    area = np.add.reduceat(cells * (pdf[1:] + pdf[:-1]) / 2, starts)
    jump = np.maximum.reduceat(cells * np.abs(np.diff(pdf)) / 2, starts)
    assert np.all(np.abs(np.diff(cdf[::40]) - area) <= jump + 4e-5)


def test_quantile_inverts_cdf(continuous):
    fractions = jnp.linspace(0.001, 0.999, 333)
    np.testing.assert_allclose(continuous.cdf(continuous.quantile(fractions)), fractions, atol=3e-5)


def test_quantile_of_atoms_is_the_first_point_that_reaches_the_fraction(discrete):
    # Fractions that no atom reaches exactly, where rounding would decide.
    fractions = np.linspace(0.00131, 0.99871, 311)
    found = discrete.quantile(jnp.asarray(fractions, jnp.float32))
    for particles in (discrete.particles, discrete.sorted_particles):
        positions, weights = particles(midpoints(200))
        expected = np.quantile(positions, fractions, weights=weights, method="inverted_cdf")
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.all(np.diff(positions) >= 0)


@pytest.mark.parametrize("name", [n for n in DISCRETE if not n.startswith("affine-p")])
def test_pdf_of_atoms_is_a_histogram(name):
    """It integrates to 1, and its CDF is as near the steps as its bars are narrow."""
    law = Compiled(DISCRETE[name]())
    low, high = np.asarray(law.quantile(jnp.array([1e-5, 1 - 1e-5])))
    reach = high - low + 1e-2
    z = np.linspace(low - reach, high + reach, 60_001)
    pdf = np.asarray(law.pdf(jnp.asarray(z, jnp.float32)), np.float64)
    cells = np.diff(z)
    area = np.concatenate([[0.0], np.cumsum(cells * (pdf[1:] + pdf[:-1]) / 2)])
    # A bar's end may fall anywhere in a cell of the grid.
    assert area[-1] == pytest.approx(1, abs=3 * cells[0] * pdf.max())
    spread = np.asarray(law.spread_cdf(jnp.asarray(z, jnp.float32)), np.float64)
    assert np.abs(area - spread).max() < 3 * cells[0] * pdf.max()
    if isinstance(law.law, Atoms):
        starts, stops, weights = (np.asarray(part, np.float64) for part in law.bars())
        steps = np.asarray(law.cdf(jnp.asarray(z, jnp.float32)), np.float64)
        moved = np.trapezoid(np.abs(area - steps), z)
        assert moved <= np.sum(weights * (stops - starts)) + 1e-3


def test_atoms_by_hand():
    law = DISCRETE["atoms"]()  # 0.6 at -1, 0.1 at 0.5, 0.3 at 3
    np.testing.assert_allclose(law.cdf(jnp.array([-1.1, -1.0, 0.6, 3.0])), [0, 0.6, 0.7, 1.0])
    np.testing.assert_array_equal(law.quantile(jnp.array([0.1, 0.59, 0.65, 0.9])), [-1, -1, 0.5, 3])
    assert float(law.mean) == pytest.approx(0.35)
    assert float(law.variance) == pytest.approx(0.6 + 0.025 + 2.7 - 0.35**2)
    assert float(law.cvar(0.65)) == pytest.approx((-0.6 + 0.5 * 0.05) / 0.65)


def test_moments_are_the_integrals(law):
    support = make_support(law)
    cdf = np.asarray(law.cdf(jnp.asarray(support, jnp.float32)), np.float64)
    # E[z] = b - int_a^b F, and Var = int 2 (z - m) (1[z > m] - F): the tails left out weigh 1e-5.
    mean = support[-1] - np.trapezoid(cdf, support)
    assert float(law.mean) == pytest.approx(mean, abs=2e-3)
    centred = support - mean
    variance = np.trapezoid(2 * centred * ((centred > 0) - cdf), support)
    assert float(law.variance) == pytest.approx(variance, rel=5e-3, abs=1e-4)
    assert float(law.std) == pytest.approx(np.sqrt(variance), rel=5e-3, abs=1e-3)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0])
def test_cvar_is_the_mean_of_the_worst_returns(law, alpha):
    fractions = (np.arange(20_000) + 0.5) / 20_000 * alpha
    worst = np.asarray(law.quantile(jnp.asarray(fractions, jnp.float32)), np.float64).mean()
    assert float(law.cvar(alpha)) == pytest.approx(worst, abs=3e-3)


def test_samples_follow_the_law(law):
    samples = np.sort(np.asarray(law.sample(jax.random.key(5), 20_000)))
    points = np.unique(samples)
    empirical = np.searchsorted(samples, points, side="right") / 20_000
    gap = np.abs(empirical - np.asarray(law.cdf(jnp.asarray(points, jnp.float32)))).max()
    # Dvoretzky, Kiefer, Wolfowitz: beyond 1.95 / sqrt(n) once in a thousand; the key is fixed.
    assert gap < 1.95 / np.sqrt(20_000)


def test_compiled_views_are_the_eager_ones(law):
    z, fractions = jnp.linspace(-1, 1, 7), jnp.linspace(0.1, 0.9, 5)

    def views(law):
        return law.cdf(z), law.pdf(z), law.quantile(fractions), law.mean

    for eager, compiled in zip(views(law.law), views(law), strict=True):
        np.testing.assert_allclose(eager, compiled, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_a_head_gives_each_actions_law(name):
    head = REPRESENTATIONS[name]().build(4, 3, DOMAIN, jax.random.key(1))
    features = jax.random.normal(jax.random.key(2), (4,))
    laws, z = head.laws(features), jnp.linspace(-2, 4, 11)
    means = laws.mean
    for action in range(3):
        one = head.law(features, jnp.int32(action))
        np.testing.assert_allclose(laws[action].cdf(z), one.cdf(z), atol=1e-5)
        np.testing.assert_allclose(means[action], one.mean, atol=1e-4)


def test_flows_stay_valid_far_outside_the_domain():
    for name in ("umnn-pdf", "umnn-cdf"):
        law = represented(name)
        far = np.asarray(law.cdf(jnp.array([-100.0, 100.0])))
        np.testing.assert_allclose(far, [0.0, 1.0], atol=1e-6)
        outside = law.quantile(law.cdf(jnp.float32(DOMAIN.high + 0.2)))
        if float(law.cdf(jnp.float32(DOMAIN.high))) < 0.999:
            assert float(outside) == pytest.approx(DOMAIN.high + 0.2, abs=1e-2)


def test_quantile_law_has_thin_exponential_tails():
    law = represented("umnn-qf")
    _, (low, high) = law.regressed(jnp.array([0.0, 1.0]))
    reach = 0.05 * DOMAIN.half_width
    outside = jnp.array([low - reach, high + 2 * reach], jnp.float32)
    expected = [1e-4 * np.exp(-1), 1 - 1e-4 * np.exp(-2)]
    np.testing.assert_allclose(law.cdf(outside), expected, atol=2e-7)
    np.testing.assert_allclose(law.pdf(outside), 1e-4 / reach * np.exp([-1, -2]), rtol=1e-3)


@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_push_forward_scales_and_shifts(name):
    law, reward, discount = represented(name), jnp.float32(1.5), jnp.float32(0.25)
    pushed, law = Compiled(bellman(law, reward, discount)), Compiled(law)
    assert float(pushed.mean) == pytest.approx(1.5 + 0.25 * float(law.mean), abs=1e-5)
    assert float(pushed.variance) == pytest.approx(0.0625 * float(law.variance), rel=1e-5)
    fractions = jnp.linspace(0.05, 0.95, 7)
    positions, weights = pushed.particles(fractions)
    before, same_weights = law.particles(fractions)
    np.testing.assert_allclose(positions, 1.5 + 0.25 * before, atol=1e-6)
    np.testing.assert_array_equal(weights, same_weights)
    z = jnp.linspace(0.02, 3.0, 13)
    np.testing.assert_allclose(pushed.cdf(z), law.cdf((z - 1.5) / 0.25), atol=1e-6)
    np.testing.assert_allclose(pushed.pdf(z), 4 * law.pdf((z - 1.5) / 0.25), rtol=1e-4, atol=1e-6)


def test_push_forward_of_a_gaussian_in_closed_form():
    # r + gamma N(m, s^2) = N(r + gamma m, gamma^2 s^2).
    pushed = bellman(normal(jnp.float32(2.0), 0.5), jnp.float32(-1.0), jnp.float32(0.5), mixture())
    z = np.linspace(-1.5, 1.5, 21)
    exact = stats.norm(0.0, 0.25)
    np.testing.assert_allclose(pushed.cdf(jnp.asarray(z, jnp.float32)), exact.cdf(z), atol=1e-6)
    np.testing.assert_allclose(pushed.pdf(jnp.asarray(z, jnp.float32)), exact.pdf(z), atol=1e-5)


def test_push_forward_of_a_terminal_state_is_the_terminal_law():
    pushed = bellman(mixture(), jnp.float32(1.0), jnp.float32(0.0), Dirac(jnp.float32(1.0)))
    np.testing.assert_array_equal(pushed.cdf(jnp.array([0.99, 1.0])), [0.0, 1.0])
    assert float(pushed.mean) == 1.0
    assert float(pushed.cvar(0.1)) == 1.0


def slipped(name: str, end: int) -> Law:
    """A law that leaves almost all mass beyond one end of the domain."""
    head = REPRESENTATIONS[name]().build(4, 2, DOMAIN, jax.random.key(0))
    law = head.law(jnp.ones(4), jnp.int32(0))
    shift = 20.0 * end if name == "umnn-qf" else -20.0 * end
    return eqx.tree_at(lambda law: law.table.heights, law, law.table.heights + shift)


@pytest.mark.parametrize("end", [-1, 1])
@pytest.mark.parametrize("name", UMNNS)
def test_a_law_cannot_stay_beyond_its_domain(name, end):
    # Else it would be its own target: nothing is compared out there, and it would never come back.
    law = slipped(name, end)
    bound = DOMAIN.high if end > 0 else DOMAIN.low
    assert float(law.value) == pytest.approx(bound, abs=0.02 * DOMAIN.width)
    # A reward that leads back inside, as rewards of a true domain do.
    reward = -0.5 * end
    target = bellman(law, jnp.float32(reward), jnp.float32(1.0))
    if name == "umnn-qf":
        positions, _ = target.particles(midpoints(8))
        np.testing.assert_allclose(positions, bound + reward, atol=1e-4)
    else:
        # Between where the bound goes and the bound itself lies nothing any more.
        inside = target.cdf(jnp.array([bound + reward - 0.25 * end, bound + reward + 0.25 * end]))
        np.testing.assert_allclose(inside, [0, 1] if end > 0 else [1, 0], atol=1e-3)
