"""Gymnasium's environments that publish their tables: FrozenLake, CliffWalking, Taxi.

They run compiled by sampling the table, and hosted by Gymnasium itself.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import gymnasium

from umdqn.envs.entry import Entry, Resolver, list_compiled
from umdqn.envs.finite import TIME_LIMIT, FiniteMdp
from umdqn.envs.setup import Setup, check_flags
from umdqn.envs.tabular import FiniteEnvironment, finite_entry
from umdqn.errors import UmdqnError, check, one_line

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


def published_mdp(name: str, **keywords: Any) -> FiniteMdp:
    """Return the table of one of Gymnasium's environments, with its time limit.

    CliffWalking is registered without one: it gets `TIME_LIMIT`, so that episodes end.
    """
    env = gymnasium.make(name, **keywords)
    check_flags(env, keywords)
    table, start = env.get_wrapper_attr("P"), env.get_wrapper_attr("initial_state_distrib")
    limit = (env.spec and env.spec.max_episode_steps) or TIME_LIMIT
    return FiniteMdp.from_table(
        table, start, name=name, action_names=ACTIONS[name], time_limit=limit
    )


class ToyText(Resolver):
    """Gymnasium's ids."""

    compiled: ClassVar = {name: FiniteEnvironment(published_mdp(name)) for name in ACTIONS}
    listings: ClassVar = {name: list_compiled(env) for name, env in compiled.items()}

    def resolve(self, name: str, setup: Setup) -> Entry | None:
        env = self.compiled.get(name)
        if env is None:
            return None
        keywords = setup.keywords.values
        if keywords:
            env = FiniteEnvironment(_repeatable_mdp(name, keywords))
        make = partial(gymnasium.make, name, **keywords | {"max_episode_steps": env.time_limit})
        # Its table has the arguments already.
        return finite_entry(env, Setup(wrappers=setup.wrappers), make)


def _repeatable_mdp(name: str, keywords: dict[str, Any]) -> FiniteMdp:
    """Return the table that some arguments lead to; raises unless it is always the same."""
    try:
        mdp, again = (published_mdp(name, **keywords) for _ in range(2))
    except UmdqnError:
        raise
    except Exception as error:
        raise UmdqnError(f"environment {name!r} cannot be made: {one_line(error)}") from error
    check(mdp == again, "env_kwargs", keywords, f"those that make the same {name} each time")
    return mdp
