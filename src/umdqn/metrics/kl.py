"""The Kullback-Leibler divergence of UMDQN-KL."""

from __future__ import annotations

import dataclasses
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from umdqn.laws import Law, normal
from umdqn.metrics.metric import MetricOnReturns
from umdqn.types import Domain

# Logarithm of the smallest normal float32: a density below it is zero.
_MASSLESS = float(np.log(np.finfo(np.float32).tiny))


@dataclasses.dataclass(frozen=True)
class KL(MetricOnReturns):
    """`int p log(p / q) dz` over the domain: p the target and q the prediction, or reversed."""

    direction: Literal["forward", "reverse"] = "forward"
    """`forward` is the paper's, D(target || prediction)."""

    def terminal(self, reward: Float[Array, ""], domain: Domain) -> Law:
        """A narrow normal law."""
        return normal(reward, domain.width / self.points)

    def __call__(
        self, target: Law, prediction: Law, points: Float[Array, "points"], domain: Domain
    ) -> Float[Array, ""]:
        laws = {"forward": (target, prediction), "reverse": (prediction, target)}
        log_p, log_q = (law.log_pdf(points) for law in laws[self.direction])
        return domain.width * jnp.mean(_relative_entropy(log_p, log_q))


def _relative_entropy(
    log_p: Float[Array, "points"], log_q: Float[Array, "points"]
) -> Float[Array, "points"]:
    """`p log(p / q)`, zero where p vanishes, finite where q does."""
    massless = log_p < _MASSLESS
    safe_p = jnp.where(massless, _MASSLESS, log_p)
    # Below this the law has no mass in float32; the reference floors the density far higher.
    safe_q = jnp.maximum(log_q, -1e6)
    return jnp.where(massless, 0.0, jnp.exp(safe_p) * (safe_p - safe_q))
