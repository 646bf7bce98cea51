"""Entries: what an environment's name resolves to, and the interface of resolvers."""

from __future__ import annotations

import abc
import copy
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import gymnasium
from gymnasium.vector import VectorEnv, VectorWrapper

from umdqn.envs.description import spec_of
from umdqn.envs.environment import Environment
from umdqn.envs.hosted import GymnasiumEnvs, HostEnv, Maker, close, guarded
from umdqn.envs.setup import Setup, check_flags
from umdqn.errors import UmdqnError, one_line
from umdqn.extras import missing
from umdqn.specs import Domain, EnvSpec


class Entry(NamedTuple):
    """An environment: its specification and the ways to make it."""

    spec: EnvSpec
    compiled: Environment | None
    """The environment for compiled loops, if there is one."""
    hosted: Callable[[int], HostEnv]
    """Makes a number of copies that run in Python."""
    drawn: Callable[[], HostEnv]
    """Makes one copy that can render, if the environment can."""
    copies: int = 1
    """How many copies the user gave, as a vector environment."""


class Listing(NamedTuple):
    """What is known of an environment without making it."""

    family: str
    domain: Domain
    extra: str
    """The optional dependency of `umdqn` that it needs, or ""."""
    compiled: Environment | None


class Resolver(abc.ABC):
    """Turns the names of one family of environments into entries."""

    listings: ClassVar[Mapping[str, Listing]] = MappingProxyType({})
    """The environments of this family that the catalogue lists."""

    @abc.abstractmethod
    def resolve(self, name: str, setup: Setup) -> Entry | None:
        """Return the entry of a name, or None if the name does not belong to this family.

        Where the setup is not plain, the environment runs in Python unless the family knows better.

        Raises `UmdqnError` if the name belongs to this family but cannot be used.
        """

    def names(self) -> Iterable[str]:
        """Return the names to suggest when a name is unknown."""
        return self.listings


def list_compiled(env: Environment) -> Listing:
    """Return the listing of a compiled environment."""
    assert env.spec.domain is not None
    return Listing(env.spec.family, env.spec.domain, "", env)


def compiled_entry(env: Environment, gymnasium_id: str, setup: Setup) -> Entry:
    """Return the entry of a compiled environment that Gymnasium has too, under an id."""
    make = partial(gymnasium.make, gymnasium_id)
    if not setup.plain:
        return hosted_entry(env.spec.name, make, setup, list_compiled(env))
    return gymnasium_entry(env.spec, make, env)


def gymnasium_entry(
    spec: EnvSpec, make: Maker, compiled: Environment | None = None, bounded: bool = True
) -> Entry:
    """Return an entry whose copies in Python are Gymnasium's."""
    hosted = partial(GymnasiumEnvs, make, spec, bounded=bounded)
    return Entry(
        spec,
        compiled,
        hosted,
        partial(drawn, make, spec, bounded),
        len(make) if isinstance(make, tuple) else 1,
    )


def hosted_entry(
    name: str,
    make: Maker,
    setup: Setup,
    listing: Listing | None = None,
    bounded: bool = True,
) -> Entry:
    """Return the entry of a Gymnasium environment; makes one to read its specification.

    If not `bounded`, observations may leave the bounds of their space.
    """
    applied = tuple(map(setup.applied, make)) if isinstance(make, tuple) else setup.applied(make)
    env = _made(name, applied[0] if isinstance(applied, tuple) else applied, listing)
    check_flags(env, setup.keywords.values)
    if isinstance(env, VectorEnv):
        if not hasattr(env, "envs"):
            # Processes of its own; members in this process are copied, and stay open for that.
            close(name, env)
        return hosted_entry(name, members(name, env), Setup(wrappers=setup.wrappers))
    family = listing.family if listing else None
    # Other rewards may come, where the environment is not made as it is listed.
    domain = listing.domain if listing and setup.plain else None
    names = getattr(env.unwrapped, "action_names", ())
    spec = guarded(name, "be described", lambda: spec_of(env, name, family, domain, names))
    close(name, env)
    return gymnasium_entry(spec, applied, bounded=bounded)


def members(name: str, env: VectorEnv) -> tuple[Callable[[], gymnasium.Env], ...]:
    """Return the functions that make the members of a vector environment.

    Loops step members one by one, so that each of their episodes has a seed of its own, the last
    observation of an episode is seen, and runs resume.
    """
    bare = None if isinstance(env, VectorWrapper) else env
    # The functions may have been given as an iterator, which is used up.
    makers = tuple(getattr(bare, "env_fns", ()))
    makers = makers or tuple(partial(copied, member) for member in getattr(bare, "envs", ()))
    if not makers:
        raise UmdqnError(
            f"environment {name!r} is a {type(env).__name__}, whose members cannot be made one by "
            "one: give a function that makes a single environment, and num_envs"
        )
    return makers


def copied(env: gymnasium.Env) -> gymnasium.Env:
    """Return a copy of an environment."""
    try:
        return copy.deepcopy(env)
    except Exception as error:
        raise UmdqnError(
            f"{env} cannot be copied, and training needs copies of it: give a function that makes "
            f"it instead ({error})"
        ) from error


def _made(name: str, make: Callable[..., Any], listing: Listing | None) -> Any:
    try:
        env = make()
    except (UmdqnError, MemoryError):
        raise
    except Exception as error:
        lacks = isinstance(error, (gymnasium.error.DependencyNotInstalled, ImportError))
        if lacks and listing and listing.extra:
            raise missing(f"environment {name!r}", listing.extra) from error
        raise UmdqnError(f"environment {name!r} cannot be made: {one_line(error)}") from error
    if not isinstance(env, gymnasium.Env | VectorEnv):
        raise UmdqnError(f"environment {name!r}: {make} made {type(env).__name__}, not an Env")
    return env


def drawn(make: Maker, spec: EnvSpec, bounded: bool = True) -> HostEnv:
    """Make one copy that renders pictures, if it can."""
    one = make[0] if isinstance(make, tuple) else make
    try:
        return GymnasiumEnvs(partial(one, render_mode="rgb_array"), spec, bounded=bounded)
    except UmdqnError:
        # Functions without a `render_mode` parameter may set the mode themselves.
        return GymnasiumEnvs(one, spec, bounded=bounded)
