"""The contract of laws, for every member of every table, and the Bellman push-forward."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from law_cases import (
    CONTINUOUS,
    DISCRETE,
    DOMAIN,
    SUPPORT,
    UMNNS,
    Compiled,
    gaussian,
    mixture,
    represented,
)
from quick import quick
from umdqn.laws.atoms import DiscreteLaw, midpoints
from umdqn.laws.bellman import bellman
from umdqn.laws.closed import Dirac
from umdqn.laws.trained import TrainedLaw
from umdqn.representations import REPRESENTATIONS


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
    particles = eqx.filter_jit(lambda law: law.settled().particles(midpoints(200)))(discrete.law)
    for each in (particles, particles.sorted()):
        expected = np.quantile(
            each.positions, fractions, weights=each.weights, method="inverted_cdf"
        )
        np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.all(np.diff(each.positions) >= 0)


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
    atoms = law.law.settled()
    if isinstance(atoms, DiscreteLaw):
        starts, stops, weights = (np.asarray(part, np.float64) for part in atoms._bars())
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


@pytest.mark.parametrize("alpha", quick([0.1, 0.5, 1.0], [0.1]))
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


@pytest.mark.parametrize(
    "name", quick(CONTINUOUS | DISCRETE, ("umnn-cdf", "quantiles", "normal", "affine-atoms"))
)
def test_compiled_views_are_the_eager_ones(name):
    law = Compiled((CONTINUOUS | DISCRETE)[name]())
    z, fractions = jnp.linspace(-1, 1, 7), jnp.linspace(0.1, 0.9, 5)

    def views(law):
        return law.cdf(z), law.pdf(z), law.quantile(fractions), law.mean

    for eager, compiled in zip(views(law.law), views(law), strict=True):
        np.testing.assert_allclose(eager, compiled, rtol=2e-4, atol=2e-5)


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
    _, (low, high) = law.claims(jnp.array([0.0, 1.0]))
    reach = 0.05 * SUPPORT.half_width
    outside = jnp.array([low - reach, high + 2 * reach], jnp.float32)
    expected = [1e-4 * np.exp(-1), 1 - 1e-4 * np.exp(-2)]
    np.testing.assert_allclose(law.cdf(outside), expected, atol=2e-7)
    np.testing.assert_allclose(law.pdf(outside), 1e-4 / reach * np.exp([-1, -2]), rtol=1e-3)


@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_push_forward_scales_and_shifts(name):
    law, reward, discount = represented(name), jnp.float32(1.5), jnp.float32(0.25)
    pushed, law = Compiled(bellman(law, reward, discount)), Compiled(law)
    # Targets take the mean by the trapezoid rule.
    assert float(pushed.mean) == pytest.approx(1.5 + 0.25 * float(law.mean), abs=1e-4)
    assert float(pushed.variance) == pytest.approx(0.0625 * float(law.variance), rel=1e-5)
    fractions = jnp.linspace(0.05, 0.95, 7)
    after, before = pushed.particles(fractions), law.particles(fractions)
    np.testing.assert_allclose(after.positions, 1.5 + 0.25 * before.positions, atol=1e-6)
    np.testing.assert_array_equal(after.weights, before.weights)
    # Where the domain [-3, 5] goes: targets see nothing beyond it.
    z = jnp.linspace(0.76, 2.74, 13)
    np.testing.assert_allclose(pushed.cdf(z), law.cdf((z - 1.5) / 0.25), atol=1e-6)
    np.testing.assert_allclose(pushed.pdf(z), 4 * law.pdf((z - 1.5) / 0.25), rtol=1e-4, atol=1e-6)


def test_push_forward_of_a_gaussian_in_closed_form():
    # r + gamma N(m, s^2) = N(r + gamma m, gamma^2 s^2).
    pushed = bellman(gaussian(2.0, 0.5), jnp.float32(-1.0), jnp.float32(0.5), mixture())
    z = np.linspace(-1.5, 1.5, 21)
    exact = stats.norm(0.0, 0.25)
    np.testing.assert_allclose(pushed.cdf(jnp.asarray(z, jnp.float32)), exact.cdf(z), atol=1e-6)
    np.testing.assert_allclose(pushed.pdf(jnp.asarray(z, jnp.float32)), exact.pdf(z), atol=1e-5)


def test_push_forward_of_a_terminal_state_is_the_terminal_law():
    pushed = bellman(mixture(), jnp.float32(1.0), jnp.float32(0.0), Dirac(jnp.float32(1.0)))
    np.testing.assert_array_equal(pushed.cdf(jnp.array([0.99, 1.0])), [0.0, 1.0])
    assert float(pushed.mean) == 1.0
    assert float(pushed.cvar(0.1)) == 1.0


def test_confined_views_agree_with_each_other():
    """A quantile law with much mass beyond both bounds: its CDF jumps where quantiles pile up."""
    law = represented("umnn-qf")
    heights = 6 * (law.table.heights - law.table.heights.mean())
    table = dataclasses.replace(law.table, heights=heights)
    confined = dataclasses.replace(law, table=table).confined()
    low, high = confined.quantile(jnp.array([0.01, 0.99]))
    assert (float(low), float(high)) == (DOMAIN.low, DOMAIN.high)
    z = jnp.array([DOMAIN.low - 0.1, DOMAIN.low, DOMAIN.high - 1e-3, DOMAIN.high])
    below, at, under, top = np.asarray(confined.cdf(z))
    assert (below, top) == (0.0, 1.0)
    assert 0.01 < at < under < 0.99
    assert np.asarray(confined.pdf(z[:1])) == 0.0


def slipped(name: str, end: int) -> TrainedLaw:
    """A law that leaves almost all mass beyond one end of the domain."""
    head = REPRESENTATIONS[name]().build(4, 2, jax.random.key(0))
    law = head.law(jnp.ones(4), jnp.int32(0), SUPPORT)
    shift = 20.0 * end if name == "umnn-qf" else -20.0 * end
    return eqx.tree_at(lambda law: law.table.heights, law, law.table.heights + shift)


@pytest.mark.parametrize("end", [-1, 1])
@pytest.mark.parametrize("name", UMNNS)
def test_a_law_cannot_stay_beyond_its_domain(name, end):
    # Else it would be its own target: nothing is compared out there, and it would never come back.
    law = slipped(name, end)
    bound = DOMAIN.high if end > 0 else DOMAIN.low
    width = DOMAIN.high - DOMAIN.low
    assert float(law.confined().mean) == pytest.approx(bound, abs=0.02 * width)
    # A reward that leads back inside, as rewards of a true domain do.
    reward = -0.5 * end
    target = bellman(law, jnp.float32(reward), jnp.float32(1.0))
    if name == "umnn-qf":
        positions = target.particles(midpoints(8)).positions
        np.testing.assert_allclose(positions, bound + reward, atol=1e-4)
    else:
        # Between where the bound goes and the bound itself lies nothing any more.
        inside = target.cdf(jnp.array([bound + reward - 0.25 * end, bound + reward + 0.25 * end]))
        np.testing.assert_allclose(inside, [0, 1] if end > 0 else [1, 0], atol=1e-3)
