"""Optimisers: settings that build an Optax gradient transformation."""

from umdqn.parts.table import Table

OPTIMISERS = Table(
    "optimiser",
    "umdqn.optimisers.optimiser:Optimiser",
    {
        "adam": "umdqn.optimisers.adam:Adam",
        "given": "umdqn.optimisers.given:Given",
    },
)
"""Optimisers by name."""
