"""What a metric is: for each view it can train, a comparison of two laws."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from umdqn.laws.law import Law
from umdqn.laws.support import Support
from umdqn.laws.trained import View
from umdqn.parts.part import Part
from umdqn.parts.ranges import Count
from umdqn.representations.representation import Representation
from umdqn.specs import Key

Sampling = Literal["random", "stratified", "fixed"]


def unit_points(key: Key, count: int, sampling: Sampling) -> Float[Array, "count"]:
    """Return points of [0, 1] whose average estimates the integral over it."""
    cells = jnp.arange(count, dtype=jnp.float32)
    choices = {
        "random": lambda: jax.random.uniform(key, (count,)),
        "stratified": lambda: (cells + jax.random.uniform(key, (count,))) / count,
        "fixed": lambda: (cells + 0.5) / count,
    }
    return choices[sampling]()


class Comparison(abc.ABC):
    """The distance of a prediction from its target through one view, for one transition."""

    @abc.abstractmethod
    def draw(self, key: Key) -> PyTree[Float[Array, "points"]]:
        """Return where an update, or a transition, compares laws: points of [0, 1]."""

    def terminal(self, reward: Float[Array, ""], support: Support) -> Law | None:
        """Return what replaces a terminal state's Dirac, if anything has to (appendix C)."""
        return None

    @abc.abstractmethod
    def __call__(
        self, target: Any, prediction: Any, points: PyTree[Float[Array, "points"]], support: Support
    ) -> Float[Array, ""]:
        """Return the distance, differentiable in the prediction."""


@dataclasses.dataclass(frozen=True)
class Metric(Part, abc.ABC):
    """A loss between the predicted law and its Bellman target."""

    large: ClassVar[bool] = False
    """Whether updates have operations so large that sharing one among cores pays."""

    points: Count = 200
    """Returns or quantile fractions that an update compares (N_z, N_tau); unused where laws have
    atoms of their own."""
    sampling: Sampling = "random"
    """How these points are chosen: drawn anew each update, one drawn in each of equal cells, or the
    centres of these cells. All three estimate the same integral."""
    per_transition: bool = False
    """Whether every transition of a batch has points of its own, as in IQN."""

    @abc.abstractmethod
    def comparisons(self) -> Mapping[View, Comparison]:
        """Return how laws are compared, by the view that is trained; the preferred view first."""

    def comparison(self, representation: type[Representation]) -> Comparison | None:
        """Return the comparison for a representation, or None if there is no view to train."""
        for view, comparison in self.comparisons().items():
            if view in representation.gives:
                return comparison
        return None

    def unit_points(self, key: Key) -> Float[Array, "points"]:
        """Return points of [0, 1] as `points` and `sampling` say."""
        return unit_points(key, self.points, self.sampling)


def returns_at(points: Float[Array, "points"], support: Support) -> Float[Array, "points"]:
    """Map points of [0, 1] onto the support."""
    return support.low + support.width * points
