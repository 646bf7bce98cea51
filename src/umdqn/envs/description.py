"""What agents need to know of a Gymnasium environment, read from one that was made."""

from __future__ import annotations

from collections.abc import Sequence

import gymnasium
from gymnasium import spaces

from umdqn.envs.observations import observation_of
from umdqn.errors import InvalidField, UmdqnError
from umdqn.specs import Domain, EnvSpec, Observation, check_actions

_PICTURES = ("minatar", "atari")


def spec_of(
    env: gymnasium.Env,
    name: str,
    family: str | None = None,
    domain: Domain | None = None,
    action_names: Sequence[str] = (),
) -> EnvSpec:
    """Return the specification of a Gymnasium environment; raise if agents cannot learn in it."""
    actions = env.action_space
    if not isinstance(actions, spaces.Discrete):
        raise UmdqnError(
            f"environment {name!r}: action_space must be Discrete (all agents here choose one of "
            f"several actions), not {actions}"
        )
    count = int(actions.n)
    check_actions(f"environment {name!r}: action_space.n", count)
    try:
        observation = observation_of(env.observation_space, name)
    except InvalidField as error:
        raise error.under(f"environment {name!r}: observation") from None
    names = tuple(action_names)
    limit = env.spec.max_episode_steps if env.spec is not None else _limit(env)
    return EnvSpec(
        name=name,
        family=_family(observation, family),
        num_actions=count,
        observation=observation,
        discount=0.99,
        domain=domain,
        time_limit=limit,
        action_names=names if len(names) == count else tuple(f"action {i}" for i in range(count)),
        first_action=int(actions.start),
    )


def _limit(env: gymnasium.Env) -> int | None:
    """Return the steps after which a wrapper truncates episodes."""
    limits = []
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, gymnasium.wrappers.TimeLimit):
            limits.append(int(env._max_episode_steps))
        env = env.env
    return min(limits, default=None)


def _family(observation: Observation, listed: str | None) -> str:
    """Return the family whose hyperparameters suit an environment, also one not in the paper.

    It is the listed one, unless wrappers have turned its observations into pictures.
    """
    seen = [slot.seen for slot in observation.slots] or [observation]
    sides = [min(sorted(each.shape)[1:]) for each in seen if each.is_picture]
    if listed is not None and (not sides or listed in _PICTURES):
        return listed
    if not sides:
        return "classic-control"
    return "atari" if max(sides) >= 36 else "minatar"
