"""Environments and their specifications."""

from umdqn.envs.catalogue import CATALOGUE, Entry, find, named
from umdqn.envs.environment import Environment, Outcome
from umdqn.envs.grid_world import GridWorld
from umdqn.envs.gymnasium_grid_world import register
from umdqn.envs.hosted import EnvironmentFault, GymnasiumEnvs, HostEnv, Position, Stepped

register()

__all__ = [
    "CATALOGUE",
    "Entry",
    "Environment",
    "EnvironmentFault",
    "GridWorld",
    "GymnasiumEnvs",
    "HostEnv",
    "Outcome",
    "Position",
    "Stepped",
    "find",
    "named",
]
