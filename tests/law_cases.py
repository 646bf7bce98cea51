"""Laws of every kind, for the tests of the contract of laws."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp

from umdqn.laws.atoms import Atoms
from umdqn.laws.bellman import Affine, Either
from umdqn.laws.closed import Dirac, GaussianMixture, Uniform, normal
from umdqn.laws.law import Law
from umdqn.laws.particles import Particles
from umdqn.laws.support import Moments, Support
from umdqn.laws.trained import TrainedLaw
from umdqn.representations import REPRESENTATIONS
from umdqn.representations.representation import Head
from umdqn.specs import Domain

DOMAIN = Domain(-3.0, 5.0)
SUPPORT = Support.of(DOMAIN)
# One that follows what is learned: mean 1 and standard deviation 0.8.
OPEN = Support(jnp.float32(1.0), jnp.float32(4.8), Moments(jnp.float32(1.0), jnp.float32(0.8)))


class TrainedMixture(GaussianMixture, TrainedLaw):
    """A Gaussian mixture that answers what training asks, to compare metrics with closed forms."""

    def claims(self, fractions):
        return fractions, self._quantile(fractions)

    def particles(self, fractions):
        weights = jnp.full(fractions.shape, 1.0 / fractions.shape[0])
        return Particles(self._quantile(fractions), weights, ordered=True, even=True)


def gaussian(mean, std) -> TrainedMixture:
    return TrainedMixture(jnp.ones(1), jnp.float32(mean)[None], jnp.float32(std)[None])


@eqx.filter_jit
def sharp_head(name: str, seed: int | jax.Array = 0) -> tuple[Head, jax.Array]:
    """Return a freshly initialised, sharpened head and features for it."""
    sharp = {"point_scale": 20.0} if name.startswith("umnn") else {}
    size = 4 if sharp else 32
    head = REPRESENTATIONS[name](**sharp).build(size, 2, jax.random.key(seed))
    return head, 3 * jax.random.normal(jax.random.key(seed + 1), (size,))


def represented(name: str, seed: int = 0, support: Support = SUPPORT) -> TrainedLaw:
    return _represented(name, jnp.int32(seed), support)


@eqx.filter_jit
def _represented(name: str, seed: jax.Array, support: Support) -> TrainedLaw:
    head, features = sharp_head(name, seed)
    return head.law(features, jnp.int32(1), support)


def mixture(seed: int = 0) -> TrainedMixture:
    means = jnp.array([-1.0, 0.5, 2.0]) + 0.5 * seed
    return TrainedMixture(jnp.array([0.3, 0.5, 0.2]), means, jnp.array([0.2, 0.6, 0.1]))


def atoms(seed: int = 0) -> Atoms:
    positions = jnp.array([0.5, -1.0, 3.0, -1.0]) * (1 + seed)
    return Atoms(positions, jnp.array([0.1, 0.2, 0.3, 0.4]))


def affine(law: Law, shift: float, scale: float) -> Affine:
    return Affine(law, jnp.float32(shift), jnp.float32(scale))


# Each makes another law of the same kind from another seed.
DISCRETE = {name: partial(represented, name) for name in REPRESENTATIONS}
UMNNS = {name: DISCRETE.pop(name) for name in ("umnn-pdf", "umnn-cdf", "umnn-qf")}
# The PDF's law is of the same class as the CDF's.
OPENED = {
    f"open-{name}": partial(represented, name, support=OPEN) for name in ("umnn-cdf", "umnn-qf")
}
CONTINUOUS = {
    **UMNNS,
    **OPENED,
    "mixture": mixture,
    "normal": lambda seed=0: normal(jnp.float32(0.5 + seed), 0.3),
    "uniform": lambda seed=0: Uniform(jnp.float32(-0.5 + seed), jnp.float32(2.0)),
    "affine": lambda seed=0: affine(represented("umnn-cdf", seed), 0.7, 0.5 + seed),
    "either": lambda seed=0: Either(
        jnp.bool_(seed % 2 == 1), Dirac(jnp.float32(1.0)), mixture(seed)
    ),
}
DISCRETE |= {
    "atoms": atoms,
    "affine-atoms": lambda seed=0: affine(represented("quantiles", seed), 0.7, 0.5 + seed),
    "affine-point": lambda seed=0: affine(mixture(), 0.7 + seed, 0.0),
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
