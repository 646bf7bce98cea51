"""Environments and their specifications."""

from umdqn.envs.environment import Environment, Outcome
from umdqn.envs.grid_world import GridWorld
from umdqn.envs.gymnasium_grid_world import register

ENVIRONMENTS: dict[str, Environment] = {"grid-world": GridWorld()}
"""Every environment by the name that users type."""

register()

__all__ = ["ENVIRONMENTS", "Environment", "GridWorld", "Outcome"]
