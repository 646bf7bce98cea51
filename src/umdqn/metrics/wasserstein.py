"""The Wasserstein distance of UMDQN-W and QR-DQN, by quantile regression (appendix C)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Annotated

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from umdqn.laws.support import Support
from umdqn.laws.trained import HasClaims, TrainedLaw, View
from umdqn.metrics.metric import Comparison, Metric
from umdqn.metrics.quantile_huber import inside, paired_quantile_huber, quantile_huber
from umdqn.parts.ranges import Range
from umdqn.specs import Key

# Up to this many pairs of a quantile and a target, summing over pairs is faster than sorting.
_FEW_PAIRS = 64 * 64


@dataclasses.dataclass(frozen=True)
class Wasserstein(Metric):
    """`sum_i E_j[rho_{tau_i}^kappa(F_target^{-1}(tau_j) - F^{-1}(tau_i))]` over drawn fractions."""

    kappa: Annotated[float, Range(least=0)] = 1.0
    """Huber threshold; 0 is plain quantile regression. Large against the returns, the minimiser is
    no longer a quantile."""

    def comparisons(self) -> Mapping[View, Comparison]:
        return {"quantile": _Regression(self)}


@dataclasses.dataclass(frozen=True)
class _Regression(Comparison):
    """Quantile regression of the prediction's claims on the target's particles."""

    metric: Wasserstein

    def draw(self, key: Key) -> tuple[Float[Array, "points"], Float[Array, "points"]]:
        """The fractions of the prediction, and those of the target in increasing order."""
        first, second = jax.random.split(key)
        return (
            inside(self.metric.unit_points(first)),
            jnp.sort(inside(self.metric.unit_points(second))),
        )

    def __call__(
        self,
        target: TrainedLaw,
        prediction: HasClaims,
        points: tuple[Float[Array, "points"], Float[Array, "points"]],
        support: Support,
    ) -> Float[Array, ""]:
        own_fractions, target_fractions = points
        fractions, quantiles = prediction.claims(own_fractions)
        targets = target.particles(target_fractions)
        few = quantiles.shape[0] * targets.positions.shape[0] <= _FEW_PAIRS
        targets = targets if few else targets.sorted()
        regress = paired_quantile_huber if few else quantile_huber
        quantiles, positions = (
            (x - support.centre) / support.unit if support.open else x
            for x in (quantiles, targets.positions)
        )
        loss = regress(quantiles, fractions, positions, targets.weights, self.metric.kappa)
        # Average, so that the number of quantiles does not change the weight against the loss of
        # the moments.
        return loss / quantiles.shape[0] if support.open else loss
