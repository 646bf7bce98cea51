"""Networks: dense layers, the UMNN, and the torsos that embed observations."""

from umdqn.parts.table import Table

TORSOS = Table(
    "torso",
    "umdqn.networks.torso:Torso",
    {
        "auto": "umdqn.networks.torsos:Auto",
        "mlp": "umdqn.networks.torsos:Mlp",
        "minatar": "umdqn.networks.torsos:MinAtar",
        "nature": "umdqn.networks.torsos:Nature",
        "given": "umdqn.networks.given:Given",
    },
)
"""Torsos by name."""
