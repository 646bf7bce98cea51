"""What a metric is, and where laws are compared."""

from __future__ import annotations

import abc
import dataclasses
from typing import ClassVar, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from umdqn.laws import Law, Representation, View
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

    needs: ClassVar[frozenset[View]]
    """The views of a law of which it compares one."""

    points: int = 200
    """How many returns or quantile fractions an update compares (N_z, N_tau), unless laws have
    atoms of their own."""
    sampling: Sampling = "random"
    per_transition: bool = False
    """Whether every transition of a batch has points of its own, as in IQN."""

    def __post_init__(self) -> None:
        check_count("points", self.points)

    def serves(self, representation: type[Representation]) -> bool:
        """Whether it can train a representation."""
        return bool(self.needs & representation.gives)

    @abc.abstractmethod
    def draw(self, key: Key, domain: Domain) -> PyTree[Float[Array, "points"]]:
        """The points of one update, or of one transition."""

    def terminal(self, law: Law, reward: Float[Array, ""], domain: Domain) -> Law | None:
        """What stands for a terminal state's Dirac among such laws, if anything (appendix C)."""
        return None

    @abc.abstractmethod
    def __call__(
        self, target: Law, prediction: Law, points: PyTree[Float[Array, "points"]], domain: Domain
    ) -> Float[Array, ""]:
        """Distance of the prediction from the target, differentiable in the prediction."""


class MetricOnReturns(Metric):
    """A metric that compares laws at returns of the domain."""

    def draw(self, key: Key, domain: Domain) -> Float[Array, "points"]:
        return domain.low + domain.width * unit_points(key, self.points, self.sampling)
