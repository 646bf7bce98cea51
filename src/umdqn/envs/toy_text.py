"""Gymnasium's environments that publish their tables: FrozenLake, CliffWalking, Taxi.

They run compiled by sampling the table, and hosted by Gymnasium itself.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import gymnasium

from umdqn.envs.entry import Entry, Resolver, list_compiled
from umdqn.envs.finite import TIME_LIMIT, FiniteMdp
from umdqn.envs.tabular import FiniteEnvironment, finite_entry

_LAKE = ("LEFT", "DOWN", "RIGHT", "UP")
_CLIFF = ("UP", "RIGHT", "DOWN", "LEFT")
_TAXI = ("SOUTH", "NORTH", "EAST", "WEST", "PICK UP", "DROP OFF")
ACTIONS: dict[str, tuple[str, ...]] = {
    "FrozenLake-v1": _LAKE,
    "FrozenLake8x8-v1": _LAKE,
    "CliffWalking-v1": _CLIFF,
    "CliffWalkingSlippery-v1": _CLIFF,
    "Taxi-v4": _TAXI,
}
"""Names of the actions, by Gymnasium's ids."""


def published_mdp(name: str) -> FiniteMdp:
    """Return the table of one of Gymnasium's environments, with its registered time limit.

    CliffWalking is registered without a limit, and could last for ever: it gets one.
    """
    env = gymnasium.make(name).unwrapped
    table, start = env.get_wrapper_attr("P"), env.get_wrapper_attr("initial_state_distrib")
    limit = gymnasium.spec(name).max_episode_steps or TIME_LIMIT
    return FiniteMdp.from_table(
        table, start, name=name, action_names=ACTIONS[name], time_limit=limit
    )


class ToyText(Resolver):
    """Gymnasium's ids."""

    compiled: ClassVar = {name: FiniteEnvironment(published_mdp(name)) for name in ACTIONS}
    listings: ClassVar = {name: list_compiled(env) for name, env in compiled.items()}

    def resolve(self, name: str) -> Entry | None:
        env = self.compiled.get(name)
        if env is None:
            return None
        make = partial(gymnasium.make, name, max_episode_steps=env.time_limit)
        return finite_entry(env, make)
