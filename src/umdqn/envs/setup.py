"""How an environment is made: its keyword arguments, and the wrappers around it."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import gymnasium

from umdqn.envs.wrappers import wrapped
from umdqn.errors import check
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


def check_flags(env: Any, keywords: Mapping[str, Any]) -> None:
    """Raise if an argument of an environment's class is text where its default is a bool.

    Any text that is not empty is true in Python, also a mistyped `false`.
    """
    try:
        parameters = inspect.signature(type(env.unwrapped)).parameters
    except (TypeError, ValueError):
        # Classes written in C may have no signature.
        return
    for name, value in keywords.items():
        flag = name in parameters and isinstance(parameters[name].default, bool)
        check(not (flag and isinstance(value, str)), f"env_kwargs.{name}", value, "true or false")
