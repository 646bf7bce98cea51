"""The continuous ranked probability score of laws, against closed forms and by its properties."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from law_cases import CONTINUOUS, DISCRETE, SUPPORT, Compiled, represented
from umdqn.laws.atoms import Atoms, CategoricalAtoms
from umdqn.laws.bellman import Affine
from umdqn.laws.closed import Dirac, GaussianMixture, Uniform, normal
from umdqn.laws.law import Law

POINTS = np.array([-7.0, -1.0, 0.2, 0.5, 0.9, 3.0, 40.0])


def gaussian_crps(mean: float, std: float, z: np.ndarray) -> np.ndarray:
    """Gneiting et al. (2005), equation 5."""
    y = (z - mean) / std
    density, mass = stats.norm.pdf(y), stats.norm.cdf(y)
    return std * (y * (2 * mass - 1) + 2 * density - 1 / np.sqrt(np.pi))


@pytest.mark.parametrize("std", [0.001, 0.3, 5.0])
def test_of_a_gaussian(std):
    z = 0.5 + std * np.array([-30.0, -2.0, -0.3, 0.0, 1.0, 4.0])
    found = normal(jnp.float32(0.5), std).crps(jnp.asarray(z, jnp.float32))
    # A position of 0.5 is known to 3e-8 in float32, which is 3e-5 of the narrowest law's std.
    np.testing.assert_allclose(found, gaussian_crps(0.5, std, z), atol=3e-4 * std)


def test_by_integration_of_a_gaussian():
    """What laws without a closed form of their own do; 2e-4 standard deviations off at most."""
    z = np.array([-30.0, -2.0, 0.0, 1.0, 4.0])
    found = Law._crps(normal(jnp.float32(0.0), 1.0), jnp.asarray(z, jnp.float32))
    np.testing.assert_allclose(found, gaussian_crps(0.0, 1.0, z), atol=3e-4)


def test_of_two_narrow_gaussians_far_apart():
    """The gap holds no mass: between the modes F = 0.3, so z = 0 pays 0.3^2 + 0.7^2, each x 50."""
    law = GaussianMixture(jnp.array([0.3, 0.7]), jnp.array([-50.0, 50.0]), jnp.array([0.01, 0.01]))
    assert float(law.crps(0.0)) == pytest.approx(50 * (0.09 + 0.49), abs=0.02)
    assert float(Law._crps(law, jnp.float32(0.0))) == pytest.approx(50 * (0.09 + 0.49), abs=0.02)


def test_of_a_point_is_the_distance():
    np.testing.assert_allclose(Dirac(jnp.float32(0.5)).crps(POINTS), np.abs(POINTS - 0.5))
    point = Affine(normal(jnp.float32(3.0), 1.0), jnp.float32(0.5), jnp.float32(0.0))
    np.testing.assert_allclose(point.crps(POINTS), np.abs(POINTS - 0.5), rtol=1e-6)


def test_of_two_atoms_by_hand():
    # A quarter at 4 and three quarters at 0: F is 3/4 in between.
    law = Atoms(jnp.array([4.0, 0.0]), jnp.array([0.25, 0.75]))
    # z = 1: int_0^1 (3/4)^2 + int_1^4 (1/4)^2 = 9/16 + 3/16; z = -2: 2 + 4/16; z = 6: 2 + 4 * 9/16.
    np.testing.assert_allclose(law.crps(jnp.array([1.0, -2.0, 6.0])), [0.75, 2.25, 4.25])


def test_of_a_uniform_by_hand():
    # On [0, 1]: int_0^z x^2 + int_z^1 (1 - x)^2 = (z^3 + (1 - z)^3) / 3; beyond 1: 1/3 + z - 1.
    law = Uniform(jnp.float32(0.5), jnp.float32(1.0))
    expected = [1 / 12, (0.008 + 0.512) / 3, 1 / 3, 1 / 3 + 1]
    np.testing.assert_allclose(law.crps(jnp.array([0.5, 0.2, 1.0, 2.0])), expected, atol=2e-5)


@pytest.mark.parametrize("name", CONTINUOUS | DISCRETE)
def test_of_every_kind_is_the_integral(name):
    """`int (F - 1[x >= z])^2` on a fine grid of 200,000 cells."""
    law = Compiled((CONTINUOUS | DISCRETE)[name]())
    low, high = np.asarray(law.quantile(jnp.array([1e-6, 1 - 1e-6])))
    width = float(max(high - low, 1e-2))
    x = np.linspace(low - width, low + 2 * width, 200_001)
    z = float(low) + width * np.array([-0.5, 0.1, 0.45, 0.8, 1.7])
    cdf = np.asarray(law.cdf(jnp.asarray((x[1:] + x[:-1]) / 2, jnp.float32)), np.float64)
    expected = [np.sum(np.diff(x) * (cdf - ((x[1:] + x[:-1]) / 2 >= each)) ** 2) for each in z]
    np.testing.assert_allclose(law.crps(jnp.asarray(z, jnp.float32)), expected, atol=5e-4 * width)


@pytest.mark.parametrize("name", ["umnn-cdf", "umnn-qf", "categorical", "implicit-quantiles"])
def test_of_many_laws_is_that_of_each(name):
    laws = [represented(name, seed).settled() for seed in range(6)]
    many = jax.tree.map(lambda *leaves: jnp.stack(leaves).reshape(2, 3, *leaves[0].shape), *laws)
    points = jnp.array([[0.1, 0.2], [-1.0, 7.0]])
    crps = eqx.filter_jit(lambda law: law.crps(points))
    found = crps(many)
    assert found.shape == (2, 3, 2, 2)
    expected = jnp.stack([crps(law) for law in laws]).reshape(found.shape)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)


def test_is_proper():
    """Among Gaussians, the one that returns follow scores best: 20,000 draws of N(1, 2)."""
    draws = 1 + 2 * jax.random.normal(jax.random.key(0), (20_000,))
    crps = eqx.filter_jit(lambda law: jnp.mean(law.crps(draws)))
    scores = {
        case: float(crps(normal(jnp.float32(case[0]), jnp.float32(case[1]))))
        for case in [(1, 2), (0.5, 2), (1.5, 2), (1, 1.5), (1, 2.7)]
    }
    assert min(scores, key=lambda case: scores[case]) == (1, 2)
    # The expected score of the right Gaussian is std / sqrt(pi).
    assert scores[1, 2] == pytest.approx(2 / np.sqrt(np.pi), abs=0.02)


def test_mass_at_the_edges():
    # Atoms at -3, 1, 5: the outer two are the bounds.
    masses = jnp.array([0.2, 0.7, 0.1])
    atoms = CategoricalAtoms(jnp.array([-3.0, 1.0, 5.0]), masses, jnp.log(masses))
    assert float(atoms.edge_mass) == pytest.approx(0.3)
    assert normal(jnp.float32(0.0), 1.0).edge_mass is None
    for name in ("umnn-pdf", "umnn-cdf", "umnn-qf"):
        law = represented(name)
        below, inside = np.asarray(law.cdf(jnp.array([-2.92, 4.92])))  # 1% of [-3, 5] inwards
        assert (float(SUPPORT.low), float(SUPPORT.high)) == (-3.0, 5.0)
        assert float(law.edge_mass) == pytest.approx(below + 1 - inside, abs=1e-5)
        assert law.settled().edge_mass.shape == ()
