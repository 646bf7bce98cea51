"""The configuration of a run: pure data, validated when made. Docstrings of fields are help texts.

Importing this file must stay cheap: whatever needs JAX is imported where it is used.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, Any, Literal

from umdqn.agents.algorithms import ALGORITHMS
from umdqn.errors import InvalidField, check, unknown
from umdqn.parts.ranges import Count, Probability, Range, check_ranges
from umdqn.runs.fields import default_part, name_of
from umdqn.runs.presets import PRESETS
from umdqn.specs import Domain, Keywords

if TYPE_CHECKING:
    from umdqn.decisions.decision import Decision
    from umdqn.exploration.exploration import Exploration
    from umdqn.metrics.metric import Metric
    from umdqn.networks.torso import Torso
    from umdqn.optimisers.optimiser import Optimiser
    from umdqn.replay.replay import Replay
    from umdqn.representations.representation import Representation
    from umdqn.supports.support_rule import SupportRule
    from umdqn.targets.target import TargetUpdate
else:
    # Types of fields are evaluated at run time, and these would import every part.
    Decision = Exploration = Metric = Torso = Any
    Optimiser = Replay = Representation = SupportRule = TargetUpdate = Any


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """How the greedy policy is scored, on environments of its own."""

    every: Count = 10_000
    """Steps between two evaluations during training."""
    episodes: Annotated[int, Range(least=1, most=1_000_000)] = 100
    """Episodes per seed and evaluation."""
    epsilon: Probability = 0.001
    """Probability of a random action at each step of an evaluation."""
    limit: Count = 27_000
    """Steps after which an episode is cut, where the environment has no time limit."""

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclasses.dataclass(frozen=True)
class Config:
    """Everything that determines a run."""

    env: str
    """Environment: a name that `umdqn envs` lists, a Gymnasium id, or module:attribute."""
    agent: str
    """Algorithm: a name that `umdqn agents` lists."""
    preset: str
    """Table of hyperparameters: tuned or paper."""
    discount: Annotated[float, Range(least=0, below=1)]
    """Discount factor; by default the environment's."""
    domain: Domain | None
    """Interval that holds the discounted returns, for a fixed support; by default the environment's
    where a preset fixes the support."""
    representation: Representation
    """How the network parameterises laws of the return; by default the algorithm's."""
    metric: Metric
    """What compares a predicted law with its Bellman target; by default the algorithm's."""
    decision: Decision = default_part("decision")
    """What a greedy choice compares: a number computed from each action's law."""
    torso: Torso = default_part("torso")
    """Network that embeds observations; auto chooses by their shape."""
    optimiser: Optimiser = default_part("optimiser")
    """Gradient-based optimiser."""
    replay: Replay = default_part("replay")
    """Replay memory."""
    exploration: Exploration = default_part("exploration")
    """How training departs from the greedy choice."""
    target: TargetUpdate = default_part("target")
    """How the target network follows the network that is trained."""
    support: SupportRule = default_part("support")
    """Where laws are resolved: where they are, or in a fixed domain."""
    env_kwargs: Keywords = Keywords()
    """Keyword arguments of the environment: key=value pairs, or a JSON object."""
    wrappers: tuple[str, ...] = ()
    """Wrappers around the environment, the first one innermost: names that `umdqn envs` lists, or
    module:Class, with arguments as NAME:key=value."""
    normalise_observations: bool = False
    """Shift and scale numbers that the network sees by their running mean and standard deviation;
    pictures and choices stay as they are."""
    double: bool = False
    """Choose the next action with the online network, as Double DQN does."""
    policy: str = ""
    """Policy that is followed and whose laws are learned, module:attribute or RUN@STEP; by default
    the agent's own, which improves."""
    steps: Count = 60_000
    """Environment steps per seed."""
    seeds: Annotated[int, Range(least=1, most=10_000)] = 1
    """Number of seeds to train."""
    seed: Annotated[int, Range(least=0, below=4_294_967_296)] = 0
    """First seed; the others count up from it."""
    update_every: Count = 1
    """Steps between two gradient updates."""
    truncation_terminates: bool = False
    """Treat a time limit as the end of the return, as the paper's reference implementation does."""
    evaluation: Evaluation = Evaluation()
    """How the greedy policy is scored."""
    checkpoint_every: Count = 20_000
    """Steps between two checkpoints."""
    checkpoint_keep: Count = 2
    """Number of newest checkpoints that can be resumed from; older ones keep the networks only."""
    chunk: Count = 1_000
    """Steps per call of the compiled program; progress and Ctrl-C are handled between calls."""
    loop: Literal["auto", "compiled", "host"] = "auto"
    """Where the environment runs: in the compiled program, or in Python (host); auto compiles where
    it can."""
    num_envs: Annotated[int, Range(least=1, most=10_000)] = 1
    """Copies of the environment that step together; host loop only."""

    def __post_init__(self) -> None:
        from umdqn.agents.pairs import check_pair

        for kind, name, table in (
            ("agent", self.agent, ALGORITHMS),
            ("preset", self.preset, PRESETS),
        ):
            if name not in table:
                raise unknown(kind, name, table)
        check_pair(self.representation, self.metric)
        self._check_domain()
        check_ranges(self)
        last = self.seed + self.seeds - 1
        check(last < 2**32, "seed", self.seed, f"below 2^32, and so the last seed, {last}")
        # Copies step together, and may go past the last step.
        most = 2**31 - self.num_envs
        check(self.steps <= most, "steps", self.steps, f"at most {most:,} with so many copies")

    def _check_domain(self) -> None:
        name, needed = name_of("support", self.support), self.support.needs_domain
        if needed and self.domain is None:
            raise InvalidField(
                "domain", None, f"two numbers, z_min and z_max: support {name!r} needs one"
            )
        if not needed and self.domain is not None:
            bounds = [self.domain.low, self.domain.high]
            raise InvalidField(
                "domain", bounds, f"support {name!r} takes none, support 'fixed' does"
            )

    @property
    def all_seeds(self) -> tuple[int, ...]:
        """The seeds of the run."""
        return tuple(range(self.seed, self.seed + self.seeds))

    @property
    def label(self) -> str:
        """The agent's name; representation and metric instead where they are not the agent's."""
        named = ALGORITHMS[self.agent]
        names = [name_of(kind, getattr(self, kind)) for kind in ("representation", "metric")]
        if names == [named.representation, named.metric]:
            return self.agent
        return " + ".join(names)
