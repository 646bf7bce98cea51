"""The summary of a calibration report, which is saved with a run and is its `trust`."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Summary:
    """How well laws agreed with realised returns."""

    verdict: str
    """One sentence."""
    coverage_90: float
    """Share of realised returns inside of central 90% intervals."""
    bias: float
    """Realised minus predicted mean."""
    crps_skill: float | None
    """1 is perfect, 0 as good as one law for all states; None if returns hardly differ."""
    edge_mass: float | None
    """Share of mass at the edges of the support; None for laws without one."""
    episodes: int
    """Episodes that were compared."""

    @classmethod
    def of(cls, report: dict[str, Any]) -> Summary:
        """Return the summary of a report."""
        named = {field.name for field in dataclasses.fields(cls)} - {"coverage_90"}
        return cls(coverage_90=report["coverage"]["0.9"], **{name: report[name] for name in named})

    def __str__(self) -> str:
        return self.verdict
