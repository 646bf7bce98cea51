"""The Kullback-Leibler divergence of UMDQN-KL."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from umdqn.laws import Categorical, Law, Representation, View, normal, project
from umdqn.metrics.metric import MetricOnReturns
from umdqn.types import Domain

# Logarithm of the smallest normal float32: a density below it is zero.
_MASSLESS = float(np.log(np.finfo(np.float32).tiny))


@dataclasses.dataclass(frozen=True)
class KL(MetricOnReturns):
    """`int p log(p / q) dz` over the domain: p the target and q the prediction, or reversed.

    Where the prediction has masses on a fixed support instead of a density, the target is projected
    onto it and the sum over the support takes the integral's place, as in C51.
    """

    needs: ClassVar[frozenset[View]] = frozenset({"density", "masses"})

    direction: Literal["forward", "reverse", "reverse-raw"] = "forward"
    """`forward` is the paper's, D(target || prediction).

    `reverse`, D(prediction || target), counts what lies below and above the domain as one cell
    each. `reverse-raw` does not, and is least for predictions that leave the domain.
    """

    def serves(self, representation: type[Representation]) -> bool:
        # A projected target has no mass at most atoms: seen from the prediction, infinitely far.
        possible = self.direction == "forward" or "density" in representation.gives
        return possible and super().serves(representation)

    def terminal(self, law: Law, reward: Float[Array, ""], domain: Domain) -> Law | None:
        """A narrow normal law; masses can be projected as they are."""
        if isinstance(law, Categorical):
            return None
        return normal(reward, domain.width / self.points)

    def __call__(
        self, target: Law, prediction: Law, points: Float[Array, "points"], domain: Domain
    ) -> Float[Array, ""]:
        if isinstance(prediction, Categorical):
            log_q = prediction.log_weights
            log_p = jnp.log(project(*target.particles(points), domain, log_q.shape[0]))
            return jnp.sum(_relative_entropy(log_p, log_q))
        log_p, log_q = target.log_pdf(points), prediction.log_pdf(points)
        if self.direction == "forward":
            return domain.width * jnp.mean(_relative_entropy(log_p, log_q))
        log_p = jnp.maximum(log_p, _MASSLESS)
        inside = domain.width * jnp.mean(_relative_entropy(log_q, log_p))
        if self.direction == "reverse-raw":
            return inside
        ends = (_log_masses_outside(law, domain) for law in (prediction, target))
        return inside + jnp.sum(_relative_entropy(*ends))


def _log_masses_outside(law: Law, domain: Domain) -> Float[Array, "2"]:
    """Logarithms of the masses below and above the domain."""
    below, up_to = law.cdf(jnp.array([domain.low, domain.high]))
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
