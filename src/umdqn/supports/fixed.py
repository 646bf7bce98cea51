"""One interval for all laws: the paper's domain."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import equinox as eqx
from jaxtyping import Array, Float

from umdqn.laws.support import Support
from umdqn.specs import Domain, Key
from umdqn.supports.support_rule import Placer, SupportRule, TargetMoments, Unit


class _FixedPlacer(Placer):
    actions: int = eqx.field(static=True)

    def __call__(self, features: Float[Array, "features"], unit: Unit) -> Support:
        return Support(unit.centre, unit.scale).of_shape((self.actions,))

    def rescaled(self, before: Unit, after: Unit) -> Placer:
        return self


@dataclasses.dataclass(frozen=True)
class FixedSupport(SupportRule):
    """The interval `domain` for all states and actions, as in the paper; units of the return."""

    needs_domain: ClassVar[bool] = True

    def unit(self, domain: Domain | None, bounded: bool) -> Unit:
        if not bounded:
            return Unit.of(0.0, 1.0)
        assert domain is not None, "configurations with this support have a domain"
        return Unit.of((domain.low + domain.high) / 2, (domain.high - domain.low) / 2)

    def build(self, features: int, actions: int, key: Key) -> Placer:
        return _FixedPlacer(actions)

    def follow(self, unit: Unit, targets: TargetMoments) -> Unit:
        return unit
