"""Decision rules: what a greedy choice compares."""

from umdqn.parts.table import Table

DECISIONS = Table(
    "decision",
    "umdqn.decisions.decision:Decision",
    {
        "mean": "umdqn.decisions.mean:Mean",
    },
)
"""Decision rules by name."""
