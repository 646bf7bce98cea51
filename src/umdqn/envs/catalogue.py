"""Which environment a name, or an object, means."""

from __future__ import annotations

import copy
import importlib
import sys
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium

from umdqn.envs import gymnasium_grid_world
from umdqn.envs.atari import DOMAINS as ATARI_DOMAINS
from umdqn.envs.atari import PREFIX as ATARI
from umdqn.envs.atari import AtariEnvs, atari_spec
from umdqn.envs.classic_control import Acrobot, CartPole, MountainCar
from umdqn.envs.environment import Environment
from umdqn.envs.grid_world import GridWorld
from umdqn.envs.hosted import GymnasiumEnvs, HostEnv, close, guarded, spec_of
from umdqn.envs.minatar import GAMES, MinAtar
from umdqn.types import Domain, EnvSpec, UmdqnError, notice, one_line, unknown

MINATAR = "MinAtar/"
_RETIRED = {
    "LunarLander-v2": ("LunarLander-v3", "Gymnasium retired v2 for an error in its wind"),
}


class Entry(NamedTuple):
    """An environment: what it is, and how to make it."""

    spec: EnvSpec
    compiled: Environment | None
    hosted: Callable[[int], HostEnv]
    """Copies of it that run in Python."""
    drawn: Callable[[], HostEnv]
    """One copy that can render."""


class Listing(NamedTuple):
    """What is known of an environment without making it."""

    family: str
    domain: Domain
    extra: str
    compiled: Environment | None


def _listed(compiled: Environment) -> Listing:
    spec = compiled.spec
    assert spec.domain is not None
    return Listing(spec.family, spec.domain, "", compiled)


_MINATAR_HIGHEST = dict.fromkeys(GAMES, 10.0) | {"SpaceInvaders": 20.0}

CATALOGUE: dict[str, Listing] = {
    "grid-world": _listed(GridWorld()),
    "CartPole-v0": _listed(CartPole("CartPole-v0", 200)),
    "CartPole-v1": _listed(CartPole("CartPole-v1", 500)),
    "Acrobot-v1": _listed(Acrobot()),
    "MountainCar-v0": _listed(MountainCar()),
    "LunarLander-v3": Listing("classic-control", Domain(-150.0, 200.0), "box2d", None),
    **{
        MINATAR + game: Listing("minatar", Domain(-1.0, highest), "minatar", None)
        for game, highest in _MINATAR_HIGHEST.items()
    },
    **{
        ATARI + game: Listing("atari", Domain(*domain), "atari", None)
        for game, domain in ATARI_DOMAINS.items()
    },
}
"""The paper's benchmark, by the names that users type."""

_OBJECT = "object "
_objects: dict[str, Callable[[], gymnasium.Env]] = {}


def find(name: str) -> Entry:
    """The environment of a name: one of the catalogue, any game of ALE or MinAtar, any id that
    Gymnasium knows, or `module:attribute`.
    """
    if name in _RETIRED:
        successor, why = _RETIRED[name]
        notice(f"{name} is {successor} now: {why}")
        name = successor
    return _find(name)


@lru_cache
def _find(name: str) -> Entry:
    listing = CATALOGUE.get(name)
    if listing is not None and listing.compiled is not None:
        return _compiled(listing.compiled)
    if name.startswith(ATARI):
        game = name.removeprefix(ATARI)
        return Entry(atari_spec(game), None, partial(AtariEnvs, game), partial(AtariEnvs, game))
    if name.startswith(MINATAR):
        game = name.removeprefix(MINATAR).partition("-")[0]
        if game not in GAMES:
            raise unknown("MinAtar game", game, GAMES)
        listing = CATALOGUE[MINATAR + game]
        return _hosted(MINATAR + game, partial(MinAtar, game), listing.family, listing.domain)
    if name.startswith(_OBJECT):
        if name not in _objects:
            raise UmdqnError(
                f"environment {name!r} was an object of another process: name it as "
                "module:attribute to use it in several"
            )
        return _hosted(name, _objects[name])
    if name in gymnasium.registry:
        known = listing.domain if listing else None
        return _hosted(name, partial(gymnasium.make, name), domain=known)
    if ":" in name:
        return _hosted(name, _imported(name))
    raise unknown("environment", name, [*CATALOGUE, *gymnasium.registry])


def named(env: Any) -> str:
    """The name of an environment given as a name, as a function that makes one, or as an object."""
    if isinstance(env, str):
        return env
    if isinstance(env, gymnasium.Env):
        name, make = type(env.unwrapped).__qualname__, partial(_copied, env)
    elif callable(env):
        path = _path_of(env)
        if path:
            return path
        name, make = getattr(env, "__qualname__", type(env).__qualname__), env
    else:
        raise UmdqnError(
            f"env = {env!r} is not allowed: a name, a Gymnasium environment, or a function that "
            "makes one"
        )
    name = f"{_OBJECT}{name} {len(_objects) + 1}"
    _objects[name] = make
    return name


def _copied(env: gymnasium.Env) -> gymnasium.Env:
    try:
        return copy.deepcopy(env)
    except Exception as error:
        raise UmdqnError(
            f"{env} cannot be copied, and training needs copies of it: give a function that makes "
            f"it instead ({error})"
        ) from error


def _path_of(make: Callable[[], gymnasium.Env]) -> str | None:
    """`module:attribute`, where that leads back to the function."""
    module, name = getattr(make, "__module__", ""), getattr(make, "__qualname__", "")
    found = getattr(sys.modules.get(module), name, None)
    return f"{module}:{name}" if found is make and module != "__main__" else None


def _imported(path: str) -> Callable[[], gymnasium.Env]:
    """What `module:attribute` means: something that makes environments, or a registered id."""
    module_name, _, attribute = path.partition(":")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        reason = one_line(error)
        raise UmdqnError(f"environment {path!r}: cannot import {module_name}: {reason}") from error
    if attribute in gymnasium.registry:
        return partial(gymnasium.make, attribute)
    if not hasattr(module, attribute):
        names = [name for name in vars(module) if not name.startswith("_")]
        raise unknown(f"attribute of {module_name}", attribute, names)
    found = getattr(module, attribute)
    if isinstance(found, gymnasium.Env):
        return partial(_copied, found)
    if not callable(found):
        raise UmdqnError(f"environment {path!r} is no environment and makes none")
    return found


def _compiled(env: Environment) -> Entry:
    name = gymnasium_grid_world.ID if isinstance(env, GridWorld) else env.spec.name

    def hosted(copies: int) -> HostEnv:
        return GymnasiumEnvs(partial(gymnasium.make, name), env.spec, copies)

    def drawn() -> HostEnv:
        return GymnasiumEnvs(partial(gymnasium.make, name, render_mode="rgb_array"), env.spec)

    return Entry(env.spec, env, hosted, drawn)


def _hosted(
    name: str,
    make: Callable[..., gymnasium.Env],
    family: str | None = None,
    domain: Domain | None = None,
) -> Entry:
    try:
        env = make()
    except (UmdqnError, MemoryError):
        raise
    except Exception as error:
        listing = CATALOGUE.get(name)
        missing = isinstance(error, (gymnasium.error.DependencyNotInstalled, ImportError))
        if missing and listing and listing.extra:
            needed = f"needs an extra: pip install 'umdqn[{listing.extra}]'"
            raise UmdqnError(f"environment {name!r} {needed}") from error
        raise UmdqnError(f"environment {name!r} cannot be made: {one_line(error)}") from error
    if not isinstance(env, gymnasium.Env):
        raise UmdqnError(f"environment {name!r}: {make} made {type(env).__name__}, not an Env")
    names = getattr(env.unwrapped, "action_names", ())
    spec = guarded(name, "be described", lambda: spec_of(env, name, family, domain, names))
    close(name, env)

    def drawn() -> HostEnv:
        try:
            return GymnasiumEnvs(partial(make, render_mode="rgb_array"), spec)
        except UmdqnError:
            return GymnasiumEnvs(make, spec)

    return Entry(spec, None, partial(GymnasiumEnvs, make, spec), drawn)
