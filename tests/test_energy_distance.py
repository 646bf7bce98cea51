"""The Cramer distance through quantiles: the integral over CDFs, computed by hand with NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from umdqn.laws.atoms import Atoms, QuantileAtoms, midpoints
from umdqn.laws.bellman import bellman
from umdqn.laws.support import Support
from umdqn.metrics.cramer import Cramer
from umdqn.representations.discrete import Quantiles
from umdqn.specs import Domain

SUPPORT = Support.of(Domain(-2.0, 2.0))


def squared_cramer(x, p, y, q) -> float:
    """`int (F - G)^2 dz` of two step functions, exactly, cell by cell."""
    z = np.sort(np.concatenate([x, y]))
    gap = (x <= z[:-1, None]) @ p - (y <= z[:-1, None]) @ q
    return float(np.sum(gap**2 * np.diff(z)))


def draw(rng, count: int, even: bool):
    """Positions in no order, some beyond the support, and their weights."""
    weights = np.full(count, 1 / count) if even else rng.dirichlet(np.ones(count))
    return 1.5 * rng.normal(size=count), weights


@pytest.mark.parametrize("even_target", [True, False])
@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("root", [True, False])
def test_cramer_of_uneven_unordered_particles_is_the_integral_over_cdfs(root, even, even_target):
    rng = np.random.default_rng(0)
    (x, p), (y, q) = draw(rng, 17, even), draw(rng, 23, even_target)
    comparison = Cramer(points=8, root=root).comparison(Quantiles)
    points = comparison.draw(jax.random.key(0))
    following = QuantileAtoms(*as_float32(y, q, midpoints(23)), even=even_target)
    # The target is 0.25 + 0.5 Y.
    target = bellman(following, jnp.float32(0.25), jnp.float32(0.5))

    def distance(positions):
        law = QuantileAtoms(positions, *as_float32(p, midpoints(17)), even=even)
        return comparison(target, law, points, SUPPORT)

    def by_hand(positions):
        squared = squared_cramer(positions, p, 0.25 + 0.5 * y, q)
        return np.sqrt(squared) if root else squared

    value, gradient = jax.value_and_grad(distance)(jnp.asarray(x, jnp.float32))
    assert float(value) == pytest.approx(by_hand(x), rel=1e-5)
    steps = 1e-6 * np.eye(17)
    slopes = [(by_hand(x + step) - by_hand(x - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-4, atol=2e-6)


def test_cramer_against_atoms_of_another_kind_by_hand():
    # F is 1/2 from 0 and 1 from 2; G is 1/4 from 1 and 1 from 3:
    # 1/2 on [0, 1], 1/4 on [1, 2], 3/4 on [2, 3], so 1/4 + 1/16 + 9/16.
    prediction = QuantileAtoms(
        jnp.array([2.0, 0.0]), jnp.full(2, 0.5), jnp.array([0.25, 0.75]), even=True
    )
    target = Atoms(jnp.array([3.0, 1.0]), jnp.array([0.75, 0.25]))
    comparison = Cramer(root=False).comparison(Quantiles)
    found = comparison(target, prediction, midpoints(4), SUPPORT)
    assert float(found) == pytest.approx(0.875, abs=1e-6)


def as_float32(*arrays):
    return tuple(jnp.asarray(array, jnp.float32) for array in arrays)
