"""The law of IQN: a network of the quantile fraction."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from umdqn.laws.atoms import Atoms
from umdqn.laws.law import Law
from umdqn.laws.particles import Particles
from umdqn.laws.support import Support
from umdqn.laws.trained import TrainedLaw
from umdqn.networks.implicit import ImplicitQuantileNetwork
from umdqn.numerics.products import product


class ImplicitLaw(TrainedLaw):
    """The law of `q(U)`, U uniform, for any function q of the fraction, increasing or not.

    The views are those of atoms at `resolution` fractions, drawn once and for all, one in each of
    equal cells: evenly spaced ones would all meet the embedding's fastest cosines at the same
    phase.
    """

    network: ImplicitQuantileNetwork
    """Shared by the laws of all actions."""
    features: Float[Array, "features"]
    weight: Float[Array, "*actions hidden"]
    bias: Float[Array, "*actions"]
    support: Support
    """What the network's outputs are relative to."""
    resolution: int = eqx.field(static=True)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.bias.shape

    @property
    def mean(self) -> Float[Array, "*actions"]:
        return jnp.mean(self._raw(scattered(self.resolution)), axis=-1)

    def _raw(self, fractions: Float[Array, "n"]) -> Float[Array, "*actions n"]:
        hidden = self.network(self.features, fractions)
        outputs = product(self.weight, hidden.T) + self.bias[..., None]
        return self.support.centre[..., None] + self.support.half_width[..., None] * outputs

    def settled(self) -> Atoms:
        positions = self._raw(scattered(self.resolution))
        return Atoms(positions, jnp.full(positions.shape, 1.0 / self.resolution))

    def _each(self, view):  # type: ignore[no-untyped-def]
        """Views of all actions: those of the atoms, which do not share a network."""
        return self.settled()._each(view) if self.shape else view(self)

    def _cdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return self.settled()._cdf(z)

    def _log_pdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return self.settled()._log_pdf(z)

    def _quantile(self, tau: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return self.settled()._quantile(tau)

    def _spread_cdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return self.settled()._spread_cdf(z)

    def _variance(self) -> Float[Array, ""]:
        return self.settled()._variance()

    def _cvar(self, alpha: float) -> Float[Array, ""]:
        return self.settled()._cvar(alpha)

    def _crps(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        return self.settled()._crps(z)

    def claims(
        self, fractions: Float[Array, "count"]
    ) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
        return fractions, self._raw(fractions)

    def particles(self, fractions: Float[Array, "count"]) -> Particles:
        weights = jnp.full(fractions.shape, 1.0 / fractions.shape[0])
        return Particles(self._raw(fractions), weights, even=True)

    def __getitem__(self, index: Any) -> Law:
        """Return the law of one action."""
        if isinstance(index, int | np.integer) and not -len(self) <= index < len(self):
            raise IndexError(f"law {index} of {len(self)}")
        weight, bias = jax.tree.map(lambda leaf: leaf[index], (self.weight, self.bias))
        support = self.support[index]
        return ImplicitLaw(self.network, self.features, weight, bias, support, self.resolution)


def scattered(count: int) -> Float[Array, "count"]:
    """Return fixed fractions, one at a random place in each of `count` equal cells."""
    draws = np.random.default_rng(0).uniform(size=count)
    return jnp.asarray((np.arange(count) + draws) / count, jnp.float32)
