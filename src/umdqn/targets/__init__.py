"""Target updates: how the target network follows the network that is trained."""

from umdqn.parts.table import Table

TARGETS = Table(
    "target",
    "umdqn.targets.target:TargetUpdate",
    {
        "periodic": "umdqn.targets.periodic:Periodic",
        "polyak": "umdqn.targets.polyak:Polyak",
    },
)
"""Target updates by name."""
