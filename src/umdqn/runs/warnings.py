"""What users are told once during training: that laws cannot be true where they are resolved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from umdqn.errors import notice
from umdqn.runs.config import Config

# Shares above which the user is told.
_MUCH_OUTSIDE = 0.01
_MUCH_AT_EDGES = 0.05


class Warnings:
    """Notices about the support of laws, each given once per run."""

    def __init__(self, config: Config, rewards_clipped: bool):
        self._config, self._clipped = config, rewards_clipped
        self._told: set[str] = set()

    def consider(self, step: int, records: Sequence[dict[str, Any]], outside: float) -> None:
        """Look at an evaluation: its records, and the share of returns outside of the domain."""
        # Learning does not see returns of rewards that it clips.
        if outside > _MUCH_OUTSIDE and not self._clipped:
            self._tell(
                "outside",
                f"{outside:.0%} of the discounted returns at step {step:,} lie outside of "
                f"{self._where}, where laws hold little of their mass; {self._advice}",
            )
        masses = [record["edge_mass"] for record in records if record["edge_mass"] is not None]
        mass = sum(masses) / len(masses) if masses else 0.0
        if mass > _MUCH_AT_EDGES:
            self._tell(
                "edges",
                f"{mass:.0%} of the mass of laws at step {step:,} sits at the edges of "
                f"{self._where}, so that they cannot be trusted; {self._advice}",
            )

    def _tell(self, kind: str, text: str) -> None:
        if kind not in self._told:
            self._told.add(kind)
            notice(text)

    @property
    def _where(self) -> str:
        domain = self._config.domain
        return (
            "their support" if domain is None else f"the domain [{domain.low:g}, {domain.high:g}]"
        )

    @property
    def _advice(self) -> str:
        if self._config.domain is None:
            return "--support.reach widens it"
        return "--support learned needs no domain, --domain Z_MIN Z_MAX sets another"
