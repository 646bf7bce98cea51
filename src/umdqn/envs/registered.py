"""Any environment that is registered with Gymnasium, by its id."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import gymnasium

from umdqn.envs.entry import Entry, Resolver, hosted_entry
from umdqn.envs.setup import Setup


class RegisteredEnvs(Resolver):
    """Ids such as `Blackjack-v1`, including those that other packages register."""

    def resolve(self, name: str, setup: Setup) -> Entry | None:
        if name not in gymnasium.registry:
            return None
        return hosted_entry(name, partial(gymnasium.make, name), setup)

    def names(self) -> Iterable[str]:
        return gymnasium.registry
