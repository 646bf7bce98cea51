"""How an environment is made: its keyword arguments, and the wrappers around it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial

import gymnasium

from umdqn.envs.wrappers import wrapped
from umdqn.specs import Keywords


@dataclasses.dataclass(frozen=True)
class Setup:
    """What a user changes of a named environment; hashable, so that entries are cached."""

    keywords: Keywords = Keywords()
    wrappers: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether the environment is made as its name says."""
        return self == Setup()

    def applied(self, make: Callable[..., gymnasium.Env]) -> Callable[..., gymnasium.Env]:
        """Return what makes the environment with these arguments, in these wrappers."""
        given = self.keywords.values
        return wrapped(partial(make, **given) if given else make, self.wrappers)
