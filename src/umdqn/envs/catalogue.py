"""Environments by name: the paper's benchmark, and every other name that can be resolved."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import gymnasium

from umdqn.envs.atari import AtariGames
from umdqn.envs.classic_control import ClassicControl
from umdqn.envs.entry import Entry, Listing, Resolver
from umdqn.envs.finite import FiniteMdp
from umdqn.envs.gymnasium_grid_world import GridWorlds
from umdqn.envs.inventory import Inventories
from umdqn.envs.minatar import MinAtarGames
from umdqn.envs.random_walk import RandomWalks
from umdqn.envs.registered import RegisteredEnvs
from umdqn.envs.toy_text import ToyText
from umdqn.envs.users import ImportedEnvs, ObjectEnvs, keep_env
from umdqn.errors import UmdqnError, notice, unknown

RESOLVERS: tuple[Resolver, ...] = (
    GridWorlds(),
    ClassicControl(),
    MinAtarGames(),
    AtariGames(),
    ToyText(),
    Inventories(),
    RandomWalks(),
    ObjectEnvs(),
    RegisteredEnvs(),
    ImportedEnvs(),
)
"""Families of environments; the first that knows a name resolves it."""

CATALOGUE: dict[str, Listing] = {
    name: listing for resolver in RESOLVERS for name, listing in resolver.listings.items()
}
"""The paper's benchmark, and finite MDPs, by the names that users type."""

RETIRED = {
    "LunarLander-v2": ("LunarLander-v3", "Gymnasium retired v2 for an error in its wind"),
    "Taxi-v3": ("Taxi-v4", "Gymnasium corrected its rain and its fickle passenger"),
    "CliffWalking-v0": (
        "CliffWalking-v1",
        "Gymnasium renumbered it",
    ),
}
"""Successor of each id that Gymnasium removed, and the reason."""


def find(name: str) -> Entry:
    """Return the environment of a name.

    A name is one of the catalogue, any game of ALE or MinAtar, any id that is registered with
    Gymnasium, `module:attribute`, or what `named` returned. Raises `UmdqnError` with the nearest
    name if none fits.
    """
    if name in RETIRED:
        successor, why = RETIRED[name]
        notice(f"{name} is {successor} now: {why}")
        name = successor
    return _resolved(name)


# Cached because most entries need an environment to be made, which can take seconds.
@lru_cache
def _resolved(name: str) -> Entry:
    for resolver in RESOLVERS:
        entry = resolver.resolve(name)
        if entry is not None:
            return entry
    known = [known for each in RESOLVERS for known in each.names()]
    raise unknown("environment", name, known, "umdqn envs")


def named(env: Any) -> str:
    """Return the name of an environment given as a name, as a function that makes one, as an
    object, or as the tables of a finite MDP.
    """
    if isinstance(env, str):
        return env
    if isinstance(env, gymnasium.Env | FiniteMdp) or callable(env):
        return keep_env(env)
    raise UmdqnError(
        f"env = {env!r} is not allowed: a name, a Gymnasium environment, or a function that makes "
        "one, or a FiniteMdp"
    )
