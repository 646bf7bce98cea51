"""The representations of IQN and FQF: a network of the quantile fraction."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int, PyTree

from umdqn.laws.atoms import Atoms, QuantileAtoms, midpoints
from umdqn.laws.law import Law
from umdqn.laws.representation import Head, Representation, View
from umdqn.networks import Linear
from umdqn.numerics import sort_data
from umdqn.types import Domain, Key, check, check_count

# Views of an implicit law are those of its values at this many fractions.
_VIEW = 200


class ImplicitQuantileNetwork(eqx.Module):
    """Quantiles of all actions: the embedding times a cosine embedding of the fraction."""

    embedding: Linear
    hidden: Linear
    output: Linear

    def __init__(self, features: int, actions: int, cosines: int, hidden: int, key: Key):
        first, second, third = jax.random.split(key, 3)
        self.embedding = Linear(cosines, features, first)
        self.hidden = Linear(features, hidden, second)
        self.output = Linear(hidden, actions, third)

    def __call__(
        self, features: Float[Array, "features"], fractions: Float[Array, "n"]
    ) -> Float[Array, "n hidden"]:
        """The last hidden layer at given fractions."""
        frequencies = np.arange(1, self.embedding.weight.shape[0] + 1, dtype=np.float32)
        waves = jnp.cos(np.float32(np.pi) * frequencies * fractions[:, None])
        mixed = jax.nn.relu(features) * jax.nn.relu(self.embedding(waves))
        return jax.nn.relu(self.hidden(mixed))

    def quantiles(
        self, features: Float[Array, "features"], fractions: Float[Array, "n"]
    ) -> Float[Array, "actions n"]:
        """The quantiles that the network claims, for all actions."""
        return self.output(self(features, fractions)).T


class ImplicitLaw(Law):
    """The law of `q(U)`, U uniform, for any function q of the fraction, increasing or not."""

    network: ImplicitQuantileNetwork
    features: Float[Array, "features"]
    weight: Float[Array, "*actions hidden"]
    bias: Float[Array, "*actions"]
    value_fractions: int = eqx.field(static=True)

    def __getitem__(self, index: int | Array) -> Law:
        """The law of one action; all share the network."""
        return ImplicitLaw(
            self.network,
            self.features,
            self.weight[index],
            self.bias[index],
            self.value_fractions,
        )

    def _raw(self, fractions: Float[Array, "n"]) -> Float[Array, "*actions n"]:
        hidden = self.network(self.features, fractions)
        return self.weight @ hidden.T + self.bias[..., None]

    def _atoms(self) -> Atoms:
        return Atoms(self._raw(midpoints(_VIEW)), jnp.full(_VIEW, 1.0 / _VIEW))

    def regressed(
        self, fractions: Float[Array, "count"]
    ) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
        return fractions, self._raw(fractions)

    def sorted_particles(
        self, fractions: Float[Array, "count"]
    ) -> tuple[Float[Array, "n"], Float[Array, "n"]]:
        positions, weights = self.particles(fractions)
        return sort_data(positions), weights

    def cdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        return self._atoms().cdf(z)

    def spread_cdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        return self._atoms().spread_cdf(z)

    def log_pdf(self, z: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        return self._atoms().log_pdf(z)

    def quantile(self, tau: Float[ArrayLike, "*points"]) -> Float[Array, "*points"]:
        return self._atoms().quantile(tau)

    @property
    def mean(self) -> Float[Array, "*actions"]:
        return jnp.mean(self._raw(midpoints(_VIEW)), axis=-1)

    @property
    def value(self) -> Float[Array, "*actions"]:
        """The average over few fractions, drawn once and for all, one in each of equal cells.

        IQN draws them anew each time, with more noise; evenly spaced ones would all meet the
        embedding's fastest cosines at the same phase.
        """
        return jnp.mean(self._raw(_scattered(self.value_fractions)), axis=-1)

    @property
    def variance(self) -> Float[Array, ""]:
        return self._atoms().variance

    def cvar(self, alpha: float) -> Float[Array, ""]:
        return self._atoms().cvar(alpha)


def _scattered(count: int) -> Float[Array, "count"]:
    draws = np.random.default_rng(0).uniform(size=count)
    return jnp.asarray((np.arange(count) + draws) / count, jnp.float32)


class _ImplicitHead(Head):
    network: ImplicitQuantileNetwork
    value_fractions: int = eqx.field(static=True)

    def laws(self, features: Float[Array, "features"]) -> Law:
        output = self.network.output
        return ImplicitLaw(
            self.network, features, output.weight.T, output.bias, self.value_fractions
        )


@dataclasses.dataclass(frozen=True)
class _Implicit(Representation):
    gives: ClassVar[frozenset[View]] = frozenset({"quantile", "mean"})

    cosines: int = 64
    """Size of the cosine embedding of a fraction."""
    hidden: int = 128
    """Width of the layer after embedding and fraction have been multiplied."""

    def __post_init__(self) -> None:
        check_count("cosines", self.cosines)
        check_count("hidden", self.hidden)

    def _network(self, features: int, actions: int, key: Key) -> ImplicitQuantileNetwork:
        return ImplicitQuantileNetwork(features, actions, self.cosines, self.hidden, key)


@dataclasses.dataclass(frozen=True)
class ImplicitQuantiles(_Implicit):
    """The quantile at any fraction (Dabney et al., 2018)."""

    value_fractions: int = 32
    """Fractions over which a greedy choice takes the expectation (K)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("value_fractions", self.value_fractions)

    def build(self, features: int, actions: int, domain: Domain, key: Key) -> Head:
        return _ImplicitHead(self._network(features, actions, key), self.value_fractions)


class _ProposalHead(Head):
    """Proposes the fractions at which it gives quantiles, the same for all actions."""

    network: ImplicitQuantileNetwork
    proposal: Linear
    entropy: float = eqx.field(static=True)

    def laws(self, features: Float[Array, "features"]) -> Law:
        shares, _, fractions = jax.lax.stop_gradient(self._propose(features))
        positions = self.network.quantiles(features, fractions)
        weights, fractions = (jnp.broadcast_to(x, positions.shape) for x in (shares, fractions))
        return QuantileAtoms(positions, weights, fractions)

    def _propose(
        self, features: Float[Array, "features"]
    ) -> tuple[Float[Array, "n"], Float[Array, "inner"], Float[Array, "n"]]:
        """Shares of the cells, the boundaries between them, and the middles of the cells."""
        # The proposal learns from its own loss and leaves the embedding alone.
        shares = jax.nn.softmax(self.proposal(jax.nn.relu(jax.lax.stop_gradient(features))))
        upper = jnp.cumsum(shares)
        return shares, upper[:-1], upper - shares / 2

    def own_loss(
        self, features: Float[Array, "features"], action: Int[Array, ""], law: Law
    ) -> Float[Array, ""]:
        """Has the gradient of Wasserstein-1 in the boundaries, less a bonus for even shares."""
        shares, boundaries, middles = self._propose(features)
        network, features, edges = jax.lax.stop_gradient((self.network, features, boundaries))
        edge = network.quantiles(features, edges)[action]
        _, middle = jax.lax.stop_gradient(law.regressed(middles))
        entropy = -jnp.sum(shares * jnp.log(jnp.maximum(shares, 1e-12)))
        return jnp.sum(fraction_gradient(edge, middle) * boundaries) - self.entropy * entropy


def fraction_gradient(
    edge: Float[Array, "inner"], middle: Float[Array, "n"]
) -> Float[Array, "inner"]:
    """How Wasserstein-1 to the quantile function changes as each inner boundary moves.

    `edge` holds the quantiles at the boundaries between cells, `middle` those at the cells' middles
    (Yang et al., 2019, proposition 1).
    """
    return 2 * edge - middle[1:] - middle[:-1]


@dataclasses.dataclass(frozen=True)
class ProposedQuantiles(_Implicit):
    """Quantiles at fractions that a second network proposes (FQF; Yang et al., 2019)."""

    quantiles: int = 32
    entropy: float = 0.0
    """Coefficient of the bonus for evenly spread fractions."""
    proposal_rate: float = 1e-5
    """Learning rate of the proposal network, which has an RMSProp of its own."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("quantiles", self.quantiles, least=2)
        check(self.entropy >= 0, "entropy", self.entropy, "at least 0")
        check(self.proposal_rate > 0, "proposal_rate", self.proposal_rate, "above 0")

    def build(self, features: int, actions: int, domain: Domain, key: Key) -> Head:
        network_key, proposal_key = jax.random.split(key)
        network = self._network(features, actions, network_key)
        proposal = Linear(features, self.quantiles, proposal_key)
        # Nearly even fractions to start with.
        proposal = eqx.tree_at(lambda layer: layer.weight, proposal, replace_fn=lambda w: 0.01 * w)
        return _ProposalHead(network, proposal, self.entropy)

    def own_optimiser(self) -> optax.GradientTransformation:
        return optax.rmsprop(self.proposal_rate, decay=0.95, eps=1e-5, centered=True)

    def own_parameters(self, head: Head) -> PyTree:
        assert isinstance(head, _ProposalHead)
        return head.proposal
