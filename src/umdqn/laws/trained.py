"""What training asks of a law, apart from the views that users ask for.

A representation declares which views of its laws are differentiable in its parameters, and a metric
which of them it can compare. Nothing asks for the class of a law.
"""

from __future__ import annotations

import abc
from typing import Literal, Protocol, runtime_checkable

from jaxtyping import Array, Float

from umdqn.laws.law import Law
from umdqn.laws.particles import Particles

View = Literal["mean", "density", "masses", "cdf", "quantile"]
"""A view that a metric can train:

- `mean`, `cdf`: the views of `Law`; `density`: `log_pdf`;
- `masses`: `log_masses` at fixed positions (`HasMasses`);
- `quantile`: `claims` (`HasClaims`).
"""


class TrainedLaw(Law):
    """A law that a network parameterises, with what Bellman targets need of it."""

    @abc.abstractmethod
    def particles(self, fractions: Float[Array, "count"]) -> Particles:
        """Return the quantiles at increasing fractions as particles, or the law's own atoms."""

    def cells(self, fractions: Float[Array, "count"]) -> Particles:
        """Return the law as masses of cells if it has cells, which is cheaper, else `particles`."""
        return self.particles(fractions)


@runtime_checkable
class HasMasses(Protocol):
    """A law with learned masses at fixed, evenly spaced positions."""

    log_masses: Float[Array, "atoms"]
    positions: Float[Array, "atoms"]


@runtime_checkable
class HasClaims(Protocol):
    """A law that is trained by quantile regression."""

    def claims(
        self, fractions: Float[Array, "count"]
    ) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
        """Return fractions and the quantiles claimed for them: at these, or at the law's own.

        Unlike `quantile`, claims may cross.
        """
        ...
