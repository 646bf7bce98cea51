"""Calibrate runs on request, and keep the reports in memory."""

from __future__ import annotations

import threading
from typing import Any

from umdqn.calibration.scores import report
from umdqn.errors import UmdqnError
from umdqn.runs.build import forecast
from umdqn.viewer.loaded import Loaded, Recent
from umdqn.viewer.numbers import finite

_MOST_REPORTS = 32


class Reports:
    """Calibrations that were computed here; nothing is written into runs."""

    def __init__(self) -> None:
        self._kept: Recent[tuple[str, int, int], dict[str, Any]] = Recent(_MOST_REPORTS)
        self._lock = threading.Lock()

    def calibrate(self, name: str, run: Loaded, step: int, episodes: int) -> dict[str, Any]:
        """Compare the laws of a checkpoint with the returns of new episodes, all seeds together."""
        if run.expects:
            raise UmdqnError(f"{run.config.label} learns expectations: there are no laws to check")
        if run.no_environment is not None:
            raise UmdqnError(f"no calibration: {run.no_environment}; umdqn calibrate does it")
        with self._lock:
            found = self._kept.recall((name, step, episodes))
            if found is None:
                forecasts = {
                    seed: forecast(run.config, run.agent, run.learned(step, seed), seed, episodes)
                    for seed in run.config.all_seeds
                }
                found = finite(report(forecasts)) | {"step": step, "seeds": len(forecasts)}
                self._kept.keep((name, step, episodes), found)
        return found
