"""One part of every kind, as a user would write it outside of the package."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PyTree

from umdqn.decisions.decision import Decision
from umdqn.errors import check
from umdqn.exploration.exploration import Exploration, Moment
from umdqn.laws.atoms import QuantileAtoms, midpoints
from umdqn.laws.law import Law
from umdqn.laws.support import Support
from umdqn.laws.trained import TrainedLaw, View
from umdqn.metrics.metric import Comparison, Metric
from umdqn.networks.torso import Torso
from umdqn.optimisers.optimiser import Optimiser
from umdqn.replay.memory import Memory, make_storage
from umdqn.replay.replay import Replay
from umdqn.replay.rings import Random, Rings
from umdqn.replay.transition import Batch
from umdqn.representations.representation import Head, Representation
from umdqn.specs import Domain, Key, Observation
from umdqn.supports.support_rule import Placer, SupportRule, TargetMoments, Unit
from umdqn.targets.target import TargetUpdate


class PairHead(Head):
    """Two atoms of equal weight per action, a distance apart that is learned."""

    centre: eqx.nn.Linear
    spread: eqx.nn.Linear
    scale: float = eqx.field(static=True)

    def laws(self, features: Float[Array, "features"], support: Support) -> TrainedLaw:
        centre, spread = self.centre(features), jax.nn.softplus(self.spread(features))
        positions = jnp.stack([centre - self.scale * spread, centre + self.scale * spread], -1)
        halves = jnp.full(positions.shape, 0.5)
        fractions = jnp.broadcast_to(midpoints(2), positions.shape)
        return QuantileAtoms(positions, halves, fractions, ordered=True, even=True)


@dataclasses.dataclass(frozen=True)
class Pair(Representation):
    """Two equally likely returns."""

    gives: ClassVar[frozenset[View]] = frozenset({"quantile", "mean"})

    scale: float = 0.1
    """Half of the distance of the two atoms, per unit that the network gives."""

    def build(self, features: int, actions: int, key: Key) -> Head:
        first, second = jax.random.split(key)
        centre, spread = (eqx.nn.Linear(features, actions, key=k) for k in (first, second))
        return PairHead(centre, spread, self.scale)


@dataclasses.dataclass(frozen=True)
class Moments(Metric):
    """Squared difference of the means and, weighted, of the variances."""

    spread: float = 0.5
    """Weight of the variances."""

    def comparisons(self) -> Mapping[View, Comparison]:
        return {"mean": MomentComparison(self.spread)}


@dataclasses.dataclass(frozen=True)
class MomentComparison(Comparison):
    """The distance of the first two moments."""

    weight: float

    def draw(self, key: Key) -> PyTree[Float[Array, "points"]]:
        return None

    def __call__(self, target: Law, prediction: Law, points: Any, support: Support) -> Any:
        means = (target.mean - prediction.mean) ** 2
        variances = (target.variance - prediction.variance) ** 2
        return means + self.weight * variances


@dataclasses.dataclass(frozen=True)
class Cautious(Decision):
    """Mean minus a multiple of the standard deviation."""

    caution: float = 0.25
    """Standard deviations that are subtracted."""

    def scores(self, laws: Law) -> Float[Array, "*laws"]:
        return laws.mean - self.caution * laws.std


@dataclasses.dataclass(frozen=True)
class Sine(Torso):
    """One layer of sines."""

    width: int = 16
    """Size of the embedding."""

    def build(self, observation: Observation, key: Key) -> Any:
        return SineNetwork(eqx.nn.Linear(observation.shape[0], self.width, key=key))


class SineNetwork(eqx.Module):
    """The network of `Sine`."""

    layer: eqx.nn.Linear

    def __call__(self, observation: Float[Array, "numbers"]) -> Float[Array, "features"]:
        return jnp.sin(self.layer(observation))


@dataclasses.dataclass(frozen=True)
class Momentum(Optimiser):
    """Gradient descent with momentum."""

    rate: float = 1e-3
    """Size of a step."""
    decay: float = 0.9
    """Share of the last step that is repeated."""

    def build(self, updates: int) -> optax.GradientTransformation:
        return optax.sgd(self.rate, self.decay)


@dataclasses.dataclass(frozen=True)
class Halved(Replay):
    """Uniform replay whose transitions all count the same, but less than usual."""

    weight: float = 0.5
    """Weight of every transition in the loss."""

    def memory(self, observation: Observation, copies: int) -> Memory:
        storage = make_storage(observation, self.capacity, copies)
        return HalvedMemory(storage, self.batch_size, self.n_step, self.weight)


@dataclasses.dataclass(frozen=True)
class HalvedMemory(Memory):
    """The memory of `Halved`."""

    weight: float

    def sample(self, rings: Rings, random: Random) -> Batch:
        index = self.storage.draw(rings, random, self.batch_size)
        library = np if isinstance(random, np.random.Generator) else jnp
        weight = library.full(self.batch_size, self.weight, np.float32)
        return Batch(self.transitions(rings, index), index, weight)


@dataclasses.dataclass(frozen=True)
class RoundRobin(Exploration):
    """The greedy action, except in every n-th step, which takes the actions in turn."""

    period: int = 4
    """Steps from one exploring action to the next."""

    def __post_init__(self) -> None:
        check(self.period > 0, "period", self.period, "above 0")

    def act(
        self,
        key: Key,
        moment: Moment,
        actions: int,
        scores: Callable[[], Float[Array, "actions"]],
    ) -> Int[Array, ""]:
        turn = (moment.choice // self.period) % actions
        exploring = moment.choice % self.period == 0
        return jnp.where(exploring, turn, jnp.argmax(scores())).astype(jnp.int32)


@dataclasses.dataclass(frozen=True)
class Lagging(TargetUpdate):
    """Move half of the way to the network at regular intervals."""

    interval: int = 50
    """Updates between two moves."""

    def update(
        self, params: PyTree, target_params: PyTree, updates: Int[Array, ""], update_every: int
    ) -> PyTree:
        share = jnp.where(updates % self.interval == 0, 0.5, 0.0)
        return jax.tree.map(lambda new, old: old + share * (new - old), params, target_params)


@dataclasses.dataclass(frozen=True)
class Around(SupportRule):
    """One interval around 0 for all laws, whatever the environment."""

    half_width: float = 2.0
    """Half of its width."""

    def unit(self, domain: Domain | None, bounded: bool) -> Unit:
        return Unit.of(0.0, self.half_width)

    def build(self, features: int, actions: int, key: Key) -> Placer:
        return AroundPlacer(actions)

    def follow(self, unit: Unit, targets: TargetMoments) -> Unit:
        return unit


class AroundPlacer(Placer):
    """The placer of `Around`."""

    actions: int = eqx.field(static=True)

    def __call__(self, features: Float[Array, "features"], unit: Unit) -> Support:
        return Support(unit.centre, unit.scale).of_shape((self.actions,))

    def rescaled(self, before: Unit, after: Unit) -> Placer:
        return self


EXAMPLES: dict[str, tuple[str, type]] = {
    "representation": ("pair", Pair),
    "metric": ("moments", Moments),
    "decision": ("cautious", Cautious),
    "torso": ("sine", Sine),
    "optimiser": ("momentum", Momentum),
    "replay": ("halved", Halved),
    "exploration": ("round-robin", RoundRobin),
    "target": ("lagging", Lagging),
    "support": ("around", Around),
}
"""Name and class of the example of every kind."""


def make_torso(observation: Observation, key: Key) -> eqx.Module:
    """Make a torso: a function that users may pass in place of a part."""
    return SineNetwork(eqx.nn.Linear(observation.shape[0], 8, key=key))


sgd = optax.sgd(1e-3)
