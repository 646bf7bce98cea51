"""Entries: what an environment's name resolves to, and the interface of resolvers."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import gymnasium

from umdqn.envs.environment import Environment
from umdqn.envs.hosted import GymnasiumEnvs, HostEnv, close, guarded, spec_of
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
    def resolve(self, name: str) -> Entry | None:
        """Return the entry of a name, or None if the name does not belong to this family.

        Raises `UmdqnError` if the name belongs to this family but cannot be used.
        """

    def names(self) -> Iterable[str]:
        """Return the names to suggest when a name is unknown."""
        return self.listings


def list_compiled(env: Environment) -> Listing:
    """Return the listing of a compiled environment."""
    assert env.spec.domain is not None
    return Listing(env.spec.family, env.spec.domain, "", env)


def compiled_entry(env: Environment, gymnasium_id: str) -> Entry:
    """Return the entry of a compiled environment that Gymnasium has too, under an id."""
    make = partial(gymnasium.make, gymnasium_id)
    return Entry(
        env.spec,
        env,
        partial(GymnasiumEnvs, make, env.spec),
        partial(GymnasiumEnvs, partial(make, render_mode="rgb_array"), env.spec),
    )


def hosted_entry(
    name: str, make: Callable[..., gymnasium.Env], listing: Listing | None = None
) -> Entry:
    """Return the entry of a Gymnasium environment; makes one to read its specification."""
    env = _made(name, make, listing)
    family, domain = (listing.family, listing.domain) if listing else (None, None)
    names = getattr(env.unwrapped, "action_names", ())
    spec = guarded(name, "be described", lambda: spec_of(env, name, family, domain, names))
    close(name, env)
    return Entry(spec, None, partial(GymnasiumEnvs, make, spec), partial(drawn, make, spec))


def _made(name: str, make: Callable[..., gymnasium.Env], listing: Listing | None) -> gymnasium.Env:
    try:
        env = make()
    except (UmdqnError, MemoryError):
        raise
    except Exception as error:
        lacks = isinstance(error, (gymnasium.error.DependencyNotInstalled, ImportError))
        if lacks and listing and listing.extra:
            raise missing(f"environment {name!r}", listing.extra) from error
        raise UmdqnError(f"environment {name!r} cannot be made: {one_line(error)}") from error
    if not isinstance(env, gymnasium.Env):
        raise UmdqnError(f"environment {name!r}: {make} made {type(env).__name__}, not an Env")
    return env


def drawn(make: Callable[..., gymnasium.Env], spec: EnvSpec) -> HostEnv:
    """Make one copy that renders pictures, if it can."""
    try:
        return GymnasiumEnvs(partial(make, render_mode="rgb_array"), spec)
    except UmdqnError:
        # Functions without a `render_mode` parameter may set the mode themselves.
        return GymnasiumEnvs(make, spec)
