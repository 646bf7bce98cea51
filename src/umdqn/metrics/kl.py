"""The Kullback-Leibler divergence of UMDQN-KL and C51."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from umdqn.laws.atoms import project
from umdqn.laws.closed import normal
from umdqn.laws.law import Law
from umdqn.laws.support import Support
from umdqn.laws.trained import HasMasses, TrainedLaw, View
from umdqn.metrics.metric import Comparison, Metric, returns_at
from umdqn.specs import Key

# Logarithm of the smallest normal float32: a density below it counts as zero.
_MASSLESS = float(np.log(np.finfo(np.float32).tiny))


@dataclasses.dataclass(frozen=True)
class KL(Metric):
    """`int p log(p / q) dz` over the support: p the target and q the prediction, or reversed."""

    direction: Literal["forward", "reverse", "reverse-raw"] = "forward"
    """`forward` is the paper's, D(target || prediction). `reverse`, D(prediction || target), counts
    what lies below and above the support as one cell each. `reverse-raw` does not, and is least for
    predictions that leave the support."""

    def comparisons(self) -> Mapping[View, Comparison]:
        densities: dict[View, Comparison] = {"density": _Densities(self)}
        # A projected target has no mass at most atoms: the reverse divergence would be infinite.
        masses: dict[View, Comparison] = {"masses": _Masses(self)}
        return masses | densities if self.direction == "forward" else densities


@dataclasses.dataclass(frozen=True)
class _Densities(Comparison):
    """The integral, estimated at returns of the support."""

    metric: KL

    def draw(self, key: Key) -> Float[Array, "points"]:
        return self.metric.unit_points(key)

    def terminal(self, reward: Float[Array, ""], support: Support) -> Law | None:
        """A narrow normal law."""
        if self._averages(support):
            return None
        return normal(reward, support.width / self.metric.points)

    def __call__(
        self, target: Law, prediction: Law, points: Float[Array, "points"], support: Support
    ) -> Float[Array, ""]:
        if self._averages(support):
            return self._average(target, prediction, points, support)
        z = returns_at(points, support)
        log_p, log_q = target.log_pdf(z), prediction.log_pdf(z)
        if self.metric.direction == "forward":
            return support.width * jnp.mean(_relative_entropy(log_p, log_q))
        log_p = jnp.maximum(log_p, _MASSLESS)
        within = support.width * jnp.mean(_relative_entropy(log_q, log_p))
        if self.metric.direction == "reverse-raw":
            return within
        ends = (_log_masses_outside(law, support) for law in (prediction, target))
        return within + jnp.sum(_relative_entropy(*ends))

    def _averages(self, support: Support) -> bool:
        return support.open and self.metric.direction == "forward"

    def _average(
        self, target: Law, prediction: Law, points: Float[Array, "points"], support: Support
    ) -> Float[Array, ""]:
        """The expectation of `-log q` over the target, smoothed over the width of a cell.

        Returns beyond the support count as if they were at its edge: there the predicted density
        carries no information, and the law's moments are learned apart from its shape.
        """
        assert isinstance(target, TrainedLaw)
        particles = target.cells(points)
        count = particles.positions.shape[0]
        smoothing = (jnp.resize(points * count % 1, (count,)) - 0.5) * support.width / count
        z = jnp.clip(particles.positions + smoothing, support.low, support.high)
        log_q = prediction.log_pdf(z) + jnp.log(support.unit)
        return -jnp.sum(particles.weights * log_q)


@dataclasses.dataclass(frozen=True)
class _Masses(Comparison):
    """The sum over atoms, with the target projected onto them, as in C51."""

    metric: KL

    def draw(self, key: Key) -> Float[Array, "points"]:
        return self.metric.unit_points(key)

    def __call__(
        self,
        target: TrainedLaw,
        prediction: HasMasses,
        points: Float[Array, "points"],
        support: Support,
    ) -> Float[Array, ""]:
        particles = target.particles(points)
        log_p = jnp.log(project(particles, jax.lax.stop_gradient(prediction.positions)))
        return jnp.sum(_relative_entropy(log_p, prediction.log_masses))


def _log_masses_outside(law: Law, support: Support) -> Float[Array, "2"]:
    """Logarithms of the masses below and above the support."""
    below, up_to = law.cdf(jnp.stack([support.low, support.high]))
    return jnp.log(jnp.maximum(jnp.stack([below, 1 - up_to]), np.finfo(np.float32).tiny))


def _relative_entropy(
    log_p: Float[Array, "points"], log_q: Float[Array, "points"]
) -> Float[Array, "points"]:
    """`p log(p / q)`, zero where p vanishes, finite where q does."""
    massless = log_p < _MASSLESS
    safe_p = jnp.where(massless, _MASSLESS, log_p)
    # Below this the law has no mass in float32; the reference floors the density far higher.
    safe_q = jnp.maximum(log_q, -1e6)
    return jnp.where(massless, 0.0, jnp.exp(safe_p) * (safe_p - safe_q))
