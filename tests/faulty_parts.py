"""Parts that do not keep their promises, as users may write them."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp

from umdqn.decisions.decision import Decision
from umdqn.exploration.exploration import Exploration
from umdqn.targets.periodic import Periodic


@dataclasses.dataclass(frozen=True)
class OneScore(Decision):
    """Gives one score for all laws."""

    def scores(self, laws: Any) -> Any:
        return laws.mean.sum()


@dataclasses.dataclass(frozen=True)
class HalfAction(Exploration):
    """Gives an action that is no whole number."""

    def act(self, key: Any, moment: Any, actions: int, scores: Any) -> Any:
        return jnp.float32(0.5)


@dataclasses.dataclass(frozen=True)
class Breaks(Periodic):
    """Cannot be made."""

    def __post_init__(self) -> None:
        raise RuntimeError("out of order")


@dataclasses.dataclass(frozen=True)
class Named(Periodic):
    """Has a field that manifests need for themselves."""

    name: str = "mine"


@dataclasses.dataclass(frozen=True)
class Listed(Periodic):
    """Has a field that cannot be hashed."""

    choices: dict[str, int] = dataclasses.field(default_factory=dict)
