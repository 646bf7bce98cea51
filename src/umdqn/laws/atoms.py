"""Discrete laws: masses at points."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from umdqn.laws.particles import Particles
from umdqn.laws.support import Support
from umdqn.laws.trained import TrainedLaw
from umdqn.numerics.products import product

# Atoms closer to each other than this share of the whole spread are drawn as one bar. A law whose
# atoms all coincide has no spread: its bar is this wide, relative to where it lies.
_RESOLUTION = 0.01
_SMALLEST_BAR = 1e-3


class DiscreteLaw(TrainedLaw):
    """`sum_i weights_i delta(positions_i)`, in any order.

    The CDF is a step function and the quantile function its generalised inverse. Atoms have no
    density; `pdf` is that of the histogram whose bars spread each mass evenly over the atom's own
    cell, which reaches half way to its neighbours (and is never narrower than a hundredth of the
    whole spread, so that atoms that nearly coincide do not make spikes).
    """

    positions: eqx.AbstractVar[Float[Array, "*laws atoms"]]
    weights: eqx.AbstractVar[Float[Array, "*laws atoms"]]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.positions.shape[:-1]

    @property
    def mean(self) -> Float[Array, "*laws"]:
        return jnp.sum(self.weights * self.positions, axis=-1)

    def _cdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        below = self.positions <= z[..., None]
        return jnp.clip(product(below.astype(jnp.float32), self.weights), 0.0, 1.0)

    def _quantile(self, tau: Float[Array, "*points"]) -> Float[Array, "*points"]:
        positions, _, reached = self._sorted()
        rank = jnp.searchsorted(reached, tau)
        return positions[jnp.minimum(rank, positions.shape[0] - 1)]

    def _log_pdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        low, high, weights = self._bars()
        z = z[..., None]
        return jnp.log(
            product(((low <= z) & (z < high)).astype(jnp.float32), weights / (high - low))
        )

    def _spread_cdf(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        low, high, weights = self._bars()
        return product(jnp.clip((z[..., None] - low) / (high - low), 0.0, 1.0), weights)

    def _variance(self) -> Float[Array, ""]:
        return jnp.sum(self.weights * (self.positions - self.mean) ** 2)

    def _cvar(self, alpha: float) -> Float[Array, ""]:
        positions, weights, reached = self._sorted()
        # The part of each mass that belongs to the worst share alpha.
        taken = jnp.clip(alpha - (reached - weights), 0.0, weights)
        return jnp.sum(taken * positions) / jnp.sum(taken)

    def _crps(self, z: Float[Array, "*points"]) -> Float[Array, "*points"]:
        """`E|Z - z| - E|Z - Z'| / 2`, exact; the second part is `int F (1 - F)`."""
        positions, weights, reached = self._sorted()
        spread = jnp.sum(jnp.diff(positions) * reached[:-1] * (1 - reached[:-1]))
        return product(jnp.abs(z[..., None] - positions), weights) - spread

    def _bars(self) -> tuple[Float[Array, "atoms"], Float[Array, "atoms"], Float[Array, "atoms"]]:
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


class Atoms(DiscreteLaw):
    """Masses at any points."""

    positions: Float[Array, "*laws atoms"]
    weights: Float[Array, "*laws atoms"]

    def particles(self, fractions: Float[Array, "count"]) -> Particles:
        return Particles(self.positions, self.weights)


class CategoricalAtoms(DiscreteLaw):
    """Learned masses at fixed, evenly spaced positions."""

    positions: Float[Array, "*laws atoms"]
    weights: Float[Array, "*laws atoms"]
    log_masses: Float[Array, "*laws atoms"]

    @property
    def edge_mass(self) -> Float[Array, "*laws"]:
        """Masses of the outermost atoms, with those in the outermost hundredths of the support."""
        return self._each(
            lambda law: law._mass_at_edges(law.positions[0], law.positions[-1])  # type: ignore[attr-defined]
        )

    def particles(self, fractions: Float[Array, "count"]) -> Particles:
        return Particles(self.positions, self.weights, ordered=True)


class QuantileAtoms(DiscreteLaw):
    """Atoms that claim to be the quantiles at given fractions; they may cross."""

    positions: Float[Array, "*laws atoms"]
    weights: Float[Array, "*laws atoms"]
    fractions: Float[Array, "*laws atoms"]
    ordered: bool = eqx.field(static=True, default=False)
    """Whether the atoms cannot cross."""
    even: bool = eqx.field(static=True, default=False)
    """Whether all weights are equal."""

    def claims(
        self, fractions: Float[Array, "count"]
    ) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
        return self.fractions, self.positions

    def particles(self, fractions: Float[Array, "count"]) -> Particles:
        return Particles(self.positions, self.weights, self.ordered, self.even)


def midpoints(count: int) -> Float[Array, "count"]:
    """Return the centres of `count` equal cells of [0, 1]."""
    return (jnp.arange(count, dtype=jnp.float32) + 0.5) / count


def even_positions(support: Support, atoms: int) -> Float[Array, "*laws atoms"]:
    """Return positions evenly spaced over the support, its bounds included."""
    steps = jnp.linspace(0.0, 1.0, atoms, dtype=jnp.float32)
    return support.low[..., None] + support.width[..., None] * steps


def project(particles: Particles, positions: Float[Array, "atoms"]) -> Float[Array, "atoms"]:
    """Return masses at even positions that keep each particle's mass and, inside, its mean.

    Each particle is shared by its two neighbours in proportion to its nearness (the categorical
    projection of C51); what lies outside goes to the nearest end.
    """
    spacing = (positions[-1] - positions[0]) / (positions.shape[0] - 1)
    inside = jnp.clip(particles.positions, positions[0], positions[-1])
    nearness = 1.0 - jnp.abs(inside[:, None] - positions) / spacing
    return product(particles.weights, jnp.maximum(nearness, 0.0))
