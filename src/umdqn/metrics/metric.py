"""What a metric is, and where laws are compared."""

from __future__ import annotations

import abc
import dataclasses
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from umdqn.laws import Law
from umdqn.types import Domain, Key, check_count

Sampling = Literal["random", "stratified", "fixed"]
"""How comparison points are chosen: drawn anew each update, one drawn in each of equal cells, or
the centres of these cells. All three estimate the same integral."""


def unit_points(key: Key, count: int, sampling: Sampling) -> Float[Array, "count"]:
    """Points of [0, 1] whose average estimates the integral over it."""
    cells = jnp.arange(count, dtype=jnp.float32)
    choices = {
        "random": lambda: jax.random.uniform(key, (count,)),
        "stratified": lambda: (cells + jax.random.uniform(key, (count,))) / count,
        "fixed": lambda: (cells + 0.5) / count,
    }
    return choices[sampling]()


@dataclasses.dataclass(frozen=True)
class Metric(abc.ABC):
    """A loss between two laws, with the points where it compares them."""

    points: int = 200
    """How many returns or quantile fractions an update compares (N_z, N_tau)."""
    sampling: Sampling = "random"

    def __post_init__(self) -> None:
        check_count("points", self.points)

    @abc.abstractmethod
    def draw(self, key: Key, domain: Domain) -> PyTree[Float[Array, "points"]]:
        """The points of one update, shared by its batch as in the paper's pseudo-code."""

    @abc.abstractmethod
    def terminal(self, reward: Float[Array, ""], domain: Domain) -> Law:
        """What stands for the Dirac law of a terminal state (appendix C)."""

    @abc.abstractmethod
    def __call__(
        self, target: Law, prediction: Law, points: PyTree[Float[Array, "points"]], domain: Domain
    ) -> Float[Array, ""]:
        """Distance of the prediction from the target, differentiable in the prediction."""


class MetricOnReturns(Metric):
    """A metric that compares laws at returns of the domain."""

    def draw(self, key: Key, domain: Domain) -> Float[Array, "points"]:
        return domain.low + domain.width * unit_points(key, self.points, self.sampling)
