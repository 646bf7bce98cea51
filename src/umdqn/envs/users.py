"""Users' own environments: `module:attribute`, and objects of this process."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium

from umdqn.envs.entry import Entry, Resolver, hosted_entry
from umdqn.envs.finite import FiniteMdp
from umdqn.envs.tabular import FiniteEnvironment, finite_entry
from umdqn.errors import UmdqnError
from umdqn.parts.imports import allow, load_attribute
from umdqn.parts.objects import PREFIX, keep, recall

_KIND = "environment"


class ObjectEnvs(Resolver):
    """Environments, functions that make them, and finite MDPs, as `keep_env` named them."""

    def resolve(self, name: str) -> Entry | None:
        if not name.startswith(PREFIX):
            return None
        return _entry(name, recall(_KIND, name))


class ImportedEnvs(Resolver):
    """Names such as `module:attribute`.

    The attribute is a class or function that makes environments, an environment to be copied, a
    `FiniteMdp`, or an id that importing the module registers with Gymnasium.
    """

    def resolve(self, name: str) -> Entry | None:
        module, colon, attribute = name.partition(":")
        if not colon:
            return None
        what = f"{_KIND} {name!r}"
        # Every module has a `__name__`: this imports the module, which may register the id.
        load_attribute(f"{module}:__name__", what)
        if attribute in gymnasium.registry:
            allow([name])
            return hosted_entry(name, partial(gymnasium.make, attribute))
        return _entry(name, load_attribute(name, what))


def keep_env(env: gymnasium.Env | FiniteMdp | Callable[..., Any]) -> str:
    """Return a name for an environment, a finite MDP, or a function that makes an environment.

    The name is `module:attribute` where that leads to the function, and can then be used in other
    processes; otherwise it holds in this process only.
    """
    return keep(_KIND, env)


def _entry(name: str, found: Any) -> Entry:
    if isinstance(found, FiniteMdp):
        return finite_entry(FiniteEnvironment(found, name))
    return hosted_entry(name, _maker(name, found))


def _maker(name: str, found: Any) -> Callable[..., gymnasium.Env]:
    if isinstance(found, gymnasium.Env):
        return partial(_copied, found)
    if not callable(found):
        raise UmdqnError(f"environment {name!r} is no environment and makes none")
    return found


def _copied(env: gymnasium.Env) -> gymnasium.Env:
    try:
        return copy.deepcopy(env)
    except Exception as error:
        raise UmdqnError(
            f"{env} cannot be copied, and training needs copies of it: give a function that makes "
            f"it instead ({error})"
        ) from error
