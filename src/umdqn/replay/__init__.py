"""Replay memories: one protocol for both loops, `add / sample / update / snapshot`."""

from umdqn.parts.table import Table

REPLAYS = Table(
    "replay",
    "umdqn.replay.replay:Replay",
    {
        "uniform": "umdqn.replay.uniform:Uniform",
    },
)
"""Replay memories by name."""
