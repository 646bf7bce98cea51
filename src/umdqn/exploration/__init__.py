"""Exploration rules: how a training agent departs from its greedy choice."""

from umdqn.parts.table import Table

EXPLORATIONS = Table(
    "exploration",
    "umdqn.exploration.exploration:Exploration",
    {
        "epsilon-greedy": "umdqn.exploration.epsilon_greedy:EpsilonGreedy",
    },
)
"""Exploration rules by name."""
