"""Discrete laws: masses at points."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from umdqn.laws.law import Law
from umdqn.numerics import sort_data
from umdqn.types import Domain

# Atoms closer to each other than this share of the whole spread are drawn as one bar. A law whose
# atoms all coincide has no spread: its bar is this wide, or this share of where it lies.
_RESOLUTION = 0.01
_SMALLEST_BAR = 1e-3


class Atoms(Law):
    """`sum_i weights_i delta(positions_i)`, in any order.

    The CDF is a step function and the quantile function its generalised inverse. Atoms have no
    density; `pdf` is that of the histogram whose bars spread each mass evenly over the atom's own
    cell, which reaches half way to its neighbours (and is never narrower than a hundredth of the
    whole spread, so that atoms that nearly coincide do not make spikes).
    """

    positions: Float[Array, "*batch atoms"]
    weights: Float[Array, "*batch atoms"]

    def cdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        below = self.positions <= jnp.asarray(z)[..., None]
        return jnp.clip(below.astype(jnp.float32) @ self.weights, 0.0, 1.0)

    def quantile(self, tau: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        positions, _, reached = self._sorted()
        rank = jnp.searchsorted(reached, jnp.asarray(tau))
        return positions[jnp.minimum(rank, positions.shape[0] - 1)]

    def log_pdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        low, high, weights = self.bars()
        z = jnp.asarray(z)[..., None]
        return jnp.log(((low <= z) & (z < high)).astype(jnp.float32) @ (weights / (high - low)))

    def spread_cdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        """The CDF of the histogram."""
        low, high, weights = self.bars()
        return jnp.clip((jnp.asarray(z)[..., None] - low) / (high - low), 0.0, 1.0) @ weights

    def bars(self) -> tuple[Float[Array, "atoms"], Float[Array, "atoms"], Float[Array, "atoms"]]:
        """Lower ends, upper ends and masses of the histogram, from left to right."""
        positions, weights, _ = self._sorted()
        inner = (positions[1:] + positions[:-1]) / 2
        # The outermost cells reach as far outwards as inwards.
        first = 2 * positions[:1] - inner[:1] if inner.shape[0] else positions
        last = 2 * positions[-1:] - inner[-1:] if inner.shape[0] else positions
        low, high = jnp.concatenate([first, inner]), jnp.concatenate([inner, last])
        smallest = _SMALLEST_BAR * jnp.maximum(jnp.max(jnp.abs(positions)), 1.0)
        narrowest = jnp.maximum(_RESOLUTION * (positions[-1] - positions[0]), smallest)
        widening = jnp.maximum(narrowest - (high - low), 0.0) / 2
        return low - widening, high + widening, weights

    def _sorted(
        self,
    ) -> tuple[Float[Array, "atoms"], Float[Array, "atoms"], Float[Array, "atoms"]]:
        """Positions in increasing order, their weights, and the probability up to each."""
        order = jnp.argsort(self.positions)
        weights = self.weights[order]
        return self.positions[order], weights, jnp.cumsum(weights)

    def particles(
        self, fractions: Float[Array, "count"]
    ) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
        return self.positions, self.weights

    def sorted_particles(
        self, fractions: Float[Array, "count"]
    ) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
        positions, weights = jax.lax.sort((self.positions, self.weights))
        return positions, weights

    @property
    def mean(self) -> Float[Array, "*batch"]:
        return jnp.sum(self.weights * self.positions, axis=-1)

    @property
    def variance(self) -> Float[Array, ""]:
        return jnp.sum(self.weights * (self.positions - self.mean) ** 2)

    def cvar(self, alpha: float) -> Float[Array, ""]:
        positions, weights, reached = self._sorted()
        # The part of each mass that belongs to the worst share alpha.
        taken = jnp.clip(alpha - (reached - weights), 0.0, weights)
        return jnp.sum(taken * positions) / jnp.sum(taken)


class Categorical(Atoms):
    """Atoms at fixed, evenly spaced positions, with learned masses."""

    log_weights: Float[Array, "*batch atoms"]


class QuantileAtoms(Atoms):
    """Atoms that claim to be the quantiles at given fractions; they may cross."""

    fractions: Float[Array, "*batch atoms"]

    def regressed(
        self, fractions: Float[Array, "count"]
    ) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
        return self.fractions, self.positions


class EvenQuantileAtoms(QuantileAtoms):
    """The same with equal weights."""

    def sorted_particles(
        self, fractions: Float[Array, "count"]
    ) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
        return sort_data(self.positions), self.weights


class OrderedQuantileAtoms(EvenQuantileAtoms):
    """The same, and the atoms cannot cross."""

    def sorted_particles(
        self, fractions: Float[Array, "count"]
    ) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
        return self.positions, self.weights


def midpoints(count: int) -> Float[Array, "count"]:
    """The centres of `count` equal cells of [0, 1]."""
    return (jnp.arange(count, dtype=jnp.float32) + 0.5) / count


def support(domain: Domain, atoms: int) -> np.ndarray:
    """Positions evenly spaced over the domain, its bounds included."""
    return np.linspace(domain.low, domain.high, atoms, dtype=np.float32)


def project(
    positions: Float[Array, "particles"],
    weights: Float[Array, "particles"],
    domain: Domain,
    atoms: int,
) -> Float[Array, "atoms"]:
    """Masses on the domain's support that keep each particle's mass and, inside, its mean.

    Each particle is shared by its two neighbours in proportion to its nearness (the categorical
    projection of C51); what lies outside goes to the nearest end.
    """
    spacing = domain.width / (atoms - 1)
    inside = jnp.clip(positions, domain.low, domain.high)
    nearness = 1.0 - jnp.abs(inside[:, None] - support(domain, atoms)) / spacing
    return weights @ jnp.maximum(nearness, 0.0)
