"""Plans of sweeps: one training for each combination of environment, agent and fields."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from umdqn.errors import UmdqnError, check, check_count, unknown
from umdqn.loops.machine import available_cores
from umdqn.parts.ranges import ranges
from umdqn.runs.build import build_agent, check_memory, is_compiled
from umdqn.runs.config import Config
from umdqn.runs.configure import configure
from umdqn.runs.fields import leaves, named_fields, override, to_dict
from umdqn.runs.files import read_bytes
from umdqn.runs.manifests import config_of
from umdqn.runs.schemas import JobData
from umdqn.runs.values import read_number
from umdqn.specs import Domain
from umdqn.text import shortened

FORMAT = "umdqn-sweep"
_MAIN_AXES = ("env", "agent", "preset")


@dataclasses.dataclass(frozen=True)
class Sweep:
    """Axes, each a list of values, and fields that all trainings share."""

    env: tuple[str, ...]
    agent: tuple[str, ...]
    preset: tuple[str, ...] = ("tuned",)
    seeds: int = 1
    seeds_per_run: int | None = None
    """Seeds per process: by default 1, or of a compiled environment as many as leave no core idle,
    because every process compiles anew."""
    axes: Mapping[str, Sequence[Any]] = dataclasses.field(default_factory=dict)
    """Further axes: fields of the configuration by dotted name."""
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Fields with the same value in all trainings."""

    def __post_init__(self) -> None:
        ranges(Config)["seeds"].check("seeds", self.seeds)
        if self.seeds_per_run is not None:
            check_count("seeds_per_run", self.seeds_per_run)
        for name, values in self._all_axes().items():
            check(len(values) > 0, name, list(values), "an axis needs at least one value")
            twice = [value for i, value in enumerate(values) if value in values[:i]]
            check(not twice, name, list(values), f"{twice[:1]} twice")
        for name in self.axes:
            check(name not in self.fields, name, "both", "an axis or a shared field, not both")
            check(name != "seed", name, "an axis", "the number `seeds` says how many there are")
        for name in (*self.axes, *self.fields):
            reserved = name in (*_MAIN_AXES, "seeds")
            check(not reserved, name, "a field", f"a sweep has a key {name!r} of its own")

    def _all_axes(self) -> dict[str, Sequence[Any]]:
        return {name: getattr(self, name) for name in _MAIN_AXES} | dict(self.axes)

    def jobs(self, cores: int | None = None) -> list[Job]:
        """Return every training of the sweep; raise if any of them is invalid.

        Seeds of compiled environments are divided so that `cores`, by default all of this machine,
        have a process each.
        """
        cores = available_cores() if cores is None else cores
        axes = self._all_axes()
        jobs = []
        for values in itertools.product(*axes.values()):
            point = dict(zip(axes, values, strict=True))
            fields = {**self.fields, **{name: point[name] for name in self.axes}}
            config = configure(point["env"], point["agent"], point["preset"], fields)
            # Missing packages and invalid parts should fail now, not in the middle of the sweep.
            agent = build_agent(config)
            agent.check_torso()
            by_seeds = self._by_seeds(config, cores)
            check_memory(by_seeds[0], agent)
            # The value as read, so that 0.5 and "0.50" are the same point.
            held = {path: value for path, _, value in leaves(config)}
            point |= {name: _plain(held[name]) for name in self.axes}
            jobs += [Job.of(point, each) for each in by_seeds]
        names: dict[str, Job] = {}
        for job in jobs:
            same = names.setdefault(job.name, job)
            check(same is job, "sweep", job.point, f"the same as {same.point}")
        return jobs

    def _by_seeds(self, config: Config, cores: int) -> list[Config]:
        per_run = self.seeds_per_run or (self._together(cores) if is_compiled(config) else 1)
        first, stop = config.seed, config.seed + self.seeds
        return [
            override(config, {"seed": start, "seeds": min(per_run, stop - start)})
            for start in range(first, stop, per_run)
        ]

    def _together(self, cores: int) -> int:
        """Return how many seeds can share a process, which has one core, while no core idles."""
        points = math.prod(map(len, self._all_axes().values()))
        processes = math.ceil(cores / points)
        return math.ceil(self.seeds / processes)


class Job(NamedTuple):
    """One training of a sweep: a run directory."""

    name: str
    """Derived from the configuration alone: the same in every sweep."""
    point: dict[str, Any]
    """Its values on the axes."""
    config: Config

    @classmethod
    def of(cls, point: dict[str, Any], config: Config) -> Job:
        """Return the job of a configuration at a point of the axes."""
        data = json.dumps(to_dict(config), sort_keys=True).encode()
        seeds = f"seed{config.seed}" if config.seeds == 1 else f"seeds{config.seed}"
        seeds += "" if config.seeds == 1 else f"-{config.seed + config.seeds - 1}"
        parts = [str(point["env"]), str(point["agent"]), seeds]
        parts = [re.sub(r"[^A-Za-z0-9.-]+", "-", part) for part in parts]
        return cls("_".join([*parts, hashlib.sha256(data).hexdigest()[:8]]), point, config)

    @property
    def varied(self) -> str:
        """Return its values on the axes that its name does not contain."""
        own = {axis: value for axis, value in self.point.items() if axis not in _MAIN_AXES}
        return ", ".join(f"{axis} {value}" for axis, value in own.items())

    def to_json(self) -> dict[str, Any]:
        """Return the job as JSON data."""
        return {"name": self.name, "point": self.point, "config": to_dict(self.config)}

    @classmethod
    def from_json(cls, data: JobData, path: Path) -> Job:
        """Return the job of JSON data; `path` is the file it was read from, for errors."""
        return cls(data["name"], data["point"], config_of(data["config"], path))


def read_sweep(path: Path) -> Sweep:
    """Return the sweep that a TOML file describes."""
    try:
        return sweep_of(tomllib.loads(read_bytes(path.resolve()).decode()))
    except ValueError as error:
        raise UmdqnError(f"{path} is not TOML: {shortened(str(error), 200)}") from error
    except RecursionError as error:
        raise UmdqnError(f"{path} is not a sweep: too deep") from error
    except UmdqnError as error:
        known = str(error)
        raise UmdqnError(known if str(path) in known else f"{path}: {known}") from error


class Joined(NamedTuple):
    """A plan that was extended."""

    plan: list[Job]
    """All jobs, those of before and new ones."""
    wanted: list[Job]
    """The jobs that cover what was asked for now."""


def joined(
    before: Sequence[Job], jobs: Sequence[Job], where: Path, begun: Callable[[Job], bool]
) -> Joined:
    """Add jobs to a plan.

    Seeds of jobs that have begun stay with these jobs; new jobs are made for the other seeds only.
    Raises if a job has begun with other settings at the same point; a job that has not begun is
    replaced.
    """
    plan, wanted = list(before), []
    for job in jobs:
        rivals = [old for old in plan if old.name == job.name or _contend(old, job)]
        for old in rivals:
            if not begun(old):
                plan.remove(old)
            elif without_seeds(old.config) != without_seeds(job.config):
                raise UmdqnError(
                    f"--out {where} holds {old.name} with other steps or fields: give another "
                    "--out (`umdqn compare` takes several)"
                )
        kept = [old for old in rivals if old in plan]
        parts = _others(job, {seed for old in kept for seed in old.config.all_seeds})
        plan += parts
        wanted += [old for old in kept if old not in wanted] + parts
    return Joined(plan, wanted)


def _others(job: Job, taken: set[int]) -> list[Job]:
    """Return the job without some seeds: one job per range of the seeds that are left."""
    left = [seed for seed in job.config.all_seeds if seed not in taken]
    if len(left) == job.config.seeds:
        return [job]
    starts = [seed for seed in left if seed - 1 not in left]
    ends = [seed for seed in left if seed + 1 not in left]
    return [
        Job.of(job.point, override(job.config, {"seed": start, "seeds": end - start + 1}))
        for start, end in zip(starts, ends, strict=True)
    ]


def _contend(first: Job, second: Job) -> bool:
    """Return whether two jobs share a seed of the same point."""
    seeds = set(first.config.all_seeds) & set(second.config.all_seeds)
    return first.point == second.point and bool(seeds)


def _plain(value: Any) -> Any:
    """Return a value as it is written in tables."""
    if isinstance(value, Domain):
        return f"{value.low:g},{value.high:g}"
    return ",".join(map(str, value)) if isinstance(value, tuple) else value


def without_seeds(config: Config) -> Config:
    """Return a configuration with its seeds reset, to compare all other settings."""
    return override(config, {"seed": 0, "seeds": 1})


def sweep_of(data: Mapping[str, Any]) -> Sweep:
    """Return the sweep that parsed TOML, or options, describe; checks every key."""
    known = [field.name for field in dataclasses.fields(Sweep)]
    for key in data:
        if key in {field.name for field in dataclasses.fields(Config)} - set(known):
            raise UmdqnError(
                f"{key!r} is a field: put it under [fields], or under [axes] to vary it"
            )
        if key not in known:
            raise unknown("key", key, known)
    given = dict(data)
    for name in ("env", "agent"):
        check(name in given, name, None, "a sweep needs it: a name or a list of names")
    for name in _MAIN_AXES:
        if name in given:
            given[name] = _names(name, given[name])
    for name in ("seeds", "seeds_per_run"):
        if name in given:
            given[name] = read_number(name, int, given[name])
    for name in ("axes", "fields"):
        table = given.get(name, {})
        check(isinstance(table, Mapping), name, table, "a table of fields")
        given[name] = named_fields(table)
    for name, values in given["axes"].items():
        check(isinstance(values, list), f"axes.{name}", values, "a list of values")
    return Sweep(**given)


def _names(field: str, value: Any) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    good = isinstance(values, list | tuple) and all(isinstance(one, str) for one in values)
    check(good, field, value, "a name or a list of names")
    return tuple(values)
