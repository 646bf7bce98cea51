"""The agent: representation x metric x torso x optimiser x exploration, and what it learns from."""

from umdqn.agents.agent import Agent, AgentState
from umdqn.agents.algorithms import ALGORITHMS, Algorithm
from umdqn.agents.exploration import EpsilonGreedy
from umdqn.agents.optimiser import Adam
from umdqn.agents.replay import Replay, ReplayConfig

__all__ = [
    "ALGORITHMS",
    "Adam",
    "Agent",
    "AgentState",
    "Algorithm",
    "EpsilonGreedy",
    "Replay",
    "ReplayConfig",
]
