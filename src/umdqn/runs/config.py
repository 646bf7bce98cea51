"""The configuration of a run: frozen, validated when made, the source of the command line."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

import jax

from umdqn.agents import ALGORITHMS, Adam, Agent, EpsilonGreedy, ReplayConfig
from umdqn.envs import Entry, find
from umdqn.laws import REPRESENTATIONS, Representation
from umdqn.loops import CompiledLoop, HostLanes, HostLoop, Lanes
from umdqn.metrics import METRICS, Metric
from umdqn.networks import Convolutions
from umdqn.runs.domains import estimated_domain
from umdqn.runs.fields import CHOICES, leaves, name_of, override, read_number
from umdqn.runs.presets import PRESETS
from umdqn.types import Domain, EnvSpec, UmdqnError, check, check_count, unknown

MOST_SEEDS = 10_000
"""Seeds of one run or of one point of a sweep."""


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Scoring of the greedy policy on environments of its own."""

    every: int = 10_000
    """Steps between two evaluations during training."""
    episodes: int = 100
    epsilon: float = 0.001
    limit: int = 27_000
    """Steps after which an episode is given up, where the environment has no limit of its own."""

    def __post_init__(self) -> None:
        check_count("every", self.every)
        check_count("limit", self.limit)
        check_count("episodes", self.episodes)
        check(0 <= self.epsilon <= 1, "epsilon", self.epsilon, "from 0 to 1")


@dataclasses.dataclass(frozen=True)
class Config:
    """Everything that determines a run."""

    env: str
    agent: str
    preset: str
    discount: float
    domain: Domain
    representation: Representation
    metric: Metric
    steps: int = 60_000
    seeds: int = 1
    """How many seeds to train."""
    seed: int = 0
    """The first seed; the others count up from it."""
    torso: tuple[int, ...] = (128, 128)
    """Widths of the layers that embed the observation; the last one is linear."""
    convolutions: Convolutions = "auto"
    """What comes before them: by default what suits the observation."""
    optimiser: Adam = Adam()
    replay: ReplayConfig = ReplayConfig()
    exploration: EpsilonGreedy = EpsilonGreedy()
    double: bool = False
    """Whether the main network chooses the next action that the target network evaluates."""
    update_every: int = 1
    """Steps between two updates of the main network."""
    target_every: int = 1_000
    """Steps between two updates of the target network."""
    truncation_terminates: bool = False
    """Whether a time limit cuts the return, as in the reference implementation."""
    evaluation: Evaluation = Evaluation()
    checkpoint_every: int = 20_000
    """Steps between two checkpoints."""
    checkpoint_keep: int = 2
    """The newest checkpoints that a run can be resumed from; of older ones the agents stay."""
    chunk: int = 1_000
    """Steps compiled into one call; the smallest unit of progress and interruption."""
    loop: Literal["auto", "compiled", "host"] = "auto"
    """Where the environment runs: by default compiled, if it can be."""
    num_envs: int = 1
    """Copies of the environment that step together; the host loop's affair."""

    def __post_init__(self) -> None:
        for kind, name, table in (
            ("agent", self.agent, ALGORITHMS),
            ("preset", self.preset, PRESETS),
        ):
            if name not in table:
                raise unknown(kind, name, table)
        _check_pair(self.representation, self.metric)
        check(0 <= self.discount < 1, "discount", self.discount, "from 0 to below 1")
        for field in (
            "steps",
            "update_every",
            "target_every",
            "checkpoint_every",
            "checkpoint_keep",
            "chunk",
            "num_envs",
        ):
            check_count(field, getattr(self, field))
        check_count("seeds", self.seeds, most=MOST_SEEDS)
        check(0 <= self.seed <= 2**32 - self.seeds, "seed", self.seed, "seeds from 0 to 2^32 - 1")
        check(
            len(self.torso) > 0 and min(self.torso) > 0, "torso", self.torso, "widths of at least 1"
        )

    @property
    def all_seeds(self) -> tuple[int, ...]:
        return tuple(range(self.seed, self.seed + self.seeds))

    @property
    def label(self) -> str:
        """The agent's name, or what it is made of where that is not what the name says."""
        named = ALGORITHMS[self.agent]
        parts = {"representation": self.representation, "metric": self.metric}
        if all(type(getattr(named, field)) is type(part) for field, part in parts.items()):
            return self.agent
        return " + ".join(name_of(field, part) for field, part in parts.items())

    def environment(self) -> Entry:
        """The environment."""
        return find(self.env)

    @property
    def compiled(self) -> bool:
        """Whether the environment runs inside compiled programs."""
        return self.loop != "host" and self.environment().compiled is not None

    def check_loop(self) -> None:
        """Refuse a loop that the environment cannot run in."""
        possible = self.compiled or self.loop != "compiled"
        check(possible, "loop", self.loop, f"{self.env} runs in Python only")
        single = not self.compiled or self.num_envs == 1
        check(single, "num_envs", self.num_envs, "more than 1 needs --loop host here")

    def build_agent(self, spec: EnvSpec | None = None) -> Agent:
        """The agent; for an environment that need not be there if its specification is given."""
        updates = max(self.steps - self.replay.warmup, 1) // self.update_every
        return Agent(
            spec=self.environment().spec if spec is None else spec,
            domain=self.domain,
            representation=self.representation,
            metric=self.metric,
            torso=self.torso,
            optimiser=self.optimiser.build(updates),
            sync_every=max(self.target_every // self.update_every, 1),
            convolutions=self.convolutions,
            double=self.double,
        )

    def build_loop(self) -> CompiledLoop | HostLoop:
        """The training loop."""
        environment = self.environment()
        shared: dict[str, Any] = {
            "agent": self.build_agent(),
            "exploration": self.exploration,
            "replay": self.replay,
            "discount": self.discount,
            "update_every": self.update_every,
            "truncation_terminates": self.truncation_terminates,
        }
        if self.compiled:
            assert environment.compiled is not None
            return CompiledLoop(env=environment.compiled, **shared)
        return HostLoop(make=environment.hosted, copies=self.num_envs, **shared)

    def build_lanes(self) -> Lanes | HostLanes:
        """The training of all seeds."""
        loop = self.build_loop()
        if isinstance(loop, CompiledLoop):
            return Lanes(loop, self.all_seeds, jax.devices())
        return HostLanes(loop, self.all_seeds, jax.devices())


def _check_pair(representation: Representation, metric: Metric) -> None:
    """Refuse a metric that cannot train a representation, and say what goes with what."""
    kind = type(representation)
    if metric.serves(kind):
        return
    name, metric_name = name_of("representation", representation), name_of("metric", metric)
    served = [other for other, rival in REPRESENTATIONS.items() if metric.serves(rival)]
    serving = [other for other, rival in METRICS.items() if rival().serves(kind)]
    raise UmdqnError(
        f"metric {metric_name!r} cannot train representation {name!r}: {name} goes with "
        f"{', '.join(serving)}; this {metric_name} goes with {', '.join(served)}"
    )


def configure(
    env: str = "grid-world",
    agent: str = "umdqn-c",
    preset: str = "paper",
    overrides: Mapping[str, Any] | None = None,
) -> Config:
    """The configuration of a preset, with fields overridden by their dotted names."""
    if agent not in ALGORITHMS:
        raise unknown("agent", agent, ALGORITHMS)
    if preset not in PRESETS:
        raise unknown("preset", preset, PRESETS)
    given = dict(overrides or {})
    algorithm, entry = ALGORITHMS[agent], find(env)
    spec = entry.spec
    domain = spec.domain
    if domain is None and "domain" not in given:
        discount = read_number("discount", float, given.get("discount", spec.discount))
        check(0 <= discount < 1, "discount", discount, "from 0 to below 1")
        domain = estimated_domain(entry, discount)
    config = Config(
        env=spec.name,
        agent=agent,
        preset=preset,
        discount=spec.discount,
        domain=domain or Domain(-1.0, 1.0),
        representation=algorithm.representation,
        metric=algorithm.metric,
    )
    family = PRESETS[preset].get(spec.family)
    if family is None:
        raise unknown(f"preset for {env}", preset, _presets_for(spec.family))
    # First the parts that the user chose, then the preset's fields that these parts have, then the
    # user's fields: naming a part does not undo the preset.
    parts = {name: given.pop(name) for name in CHOICES if name in given}
    config = override(config, parts)
    known = {path for path, _, _ in leaves(config)}
    concerned = ["all", spec.name]
    concerned += [f"{name} {name_of(name, getattr(config, name))}" for name in CHOICES]
    concerned += [agent] if config.label == agent else []
    fields = {k: v for name in concerned for k, v in family.get(name, {}).items()}
    config = override(override(config, {k: v for k, v in fields.items() if k in known}), given)
    config.check_loop()
    return config


def _presets_for(family: str) -> list[str]:
    return [name for name, families in PRESETS.items() if family in families]
