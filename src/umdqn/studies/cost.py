"""Estimates of how long trainings take, from rates that were measured once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from umdqn.loops.machine import available_cores
from umdqn.runs.build import environment
from umdqn.runs.config import Config
from umdqn.sweeps.plan import Job

# Seconds from the start of a process to its first step: imports and compilation.
_START = 12.0


@cache
def rates() -> dict[str, dict[str, float]]:
    """Return measured steps per second of one seed on one core, by family and agent.

    An environment that differs from its family is listed under its own name.
    """
    text = files("umdqn.studies").joinpath("rates.json").read_text()
    return json.loads(text)["steps_per_second"]


def seconds(config: Config) -> float:
    """Return the estimated duration of a run on one core of the machine of the rates."""
    known = rates()
    family = environment(config).spec.family
    alike = known.get(config.env, known.get(family, known["classic-control"]))
    work = config.steps * config.seeds / alike.get(config.agent, min(alike.values()))
    # The rates are for the paper's batch size and update interval.
    work *= (config.replay.batch_size / 32) ** 0.7
    usual = 4 if family in ("minatar", "atari") else 1
    return _START + work * usual / config.update_every


def hours(jobs: Iterable[Job], cores: int | None = None) -> float:
    """Return the estimated duration of several jobs; by default on all cores."""
    costs = [seconds(job.config) for job in jobs]
    if not costs:
        return 0.0
    return max(sum(costs) / (cores or available_cores()), max(costs)) / 3600
