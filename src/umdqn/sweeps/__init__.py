"""Sweeps: many runs, each once, on this machine or on a Ray cluster."""

from umdqn.sweeps.driver import State, as_planned, read_plan, run_sweep
from umdqn.sweeps.plan import Job, Sweep, read_sweep, sweep_of
from umdqn.sweeps.pools import LocalPool, Pool, RayPool
from umdqn.sweeps.results import (
    axes_of,
    collect,
    collect_all,
    final,
    unfinished,
    write_results,
)
from umdqn.sweeps.work import Outcome, Place

__all__ = [
    "Job",
    "LocalPool",
    "Outcome",
    "Place",
    "Pool",
    "RayPool",
    "State",
    "Sweep",
    "as_planned",
    "axes_of",
    "collect",
    "collect_all",
    "final",
    "read_plan",
    "read_sweep",
    "run_sweep",
    "sweep_of",
    "unfinished",
    "write_results",
]
