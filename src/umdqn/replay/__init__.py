"""Replay memories: one protocol for both loops."""

from umdqn.parts.table import Table

REPLAYS = Table(
    "replay",
    "umdqn.replay.replay:Replay",
    {
        "uniform": "umdqn.replay.uniform:Uniform",
    },
)
"""Replay memories by name."""
