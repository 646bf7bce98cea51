"""The representation of FQF: quantiles at fractions that a second network proposes."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree

from umdqn.laws.atoms import QuantileAtoms
from umdqn.laws.support import Support
from umdqn.laws.trained import TrainedLaw
from umdqn.networks.dense import Linear
from umdqn.networks.implicit import ImplicitQuantileNetwork
from umdqn.parts.ranges import Positive, Range
from umdqn.representations.discrete import placed
from umdqn.representations.implicit import ImplicitRepresentation
from umdqn.representations.representation import Head
from umdqn.specs import Key


class _ProposalHead(Head):
    """Proposes the fractions at which it gives quantiles, the same for all actions."""

    network: ImplicitQuantileNetwork
    proposal: Linear
    entropy: float = eqx.field(static=True)

    def laws(self, features: Float[Array, "features"], support: Support) -> TrainedLaw:
        shares, _, fractions = jax.lax.stop_gradient(self._propose(features))
        outputs = self.network.quantiles(features, fractions)
        weights, fractions = (jnp.broadcast_to(x, outputs.shape) for x in (shares, fractions))
        positions = placed(outputs, support, weights)
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
        self,
        features: Float[Array, "features"],
        action: Int[Array, ""],
        law: TrainedLaw,
        support: Support,
    ) -> Float[Array, ""]:
        """Has the gradient of Wasserstein-1 in the boundaries, less a bonus for even shares."""
        shares, boundaries, middles = self._propose(features)
        # In units of the shape: where the law lies changes no fraction.
        network, features, *fractions = jax.lax.stop_gradient(
            (self.network, features, boundaries, middles)
        )
        edge, middle = (network.quantiles(features, each)[action] for each in fractions)
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
class ProposedQuantiles(ImplicitRepresentation):
    """Quantiles at fractions that a second network proposes (FQF; Yang et al., 2019)."""

    quantiles: Annotated[int, Range(least=2)] = 32
    """Number of quantiles."""
    entropy: Annotated[float, Range(least=0)] = 0.0
    """Coefficient of the bonus for evenly spread fractions."""
    proposal_rate: Positive = 1e-5
    """Learning rate of the proposal network, which has an RMSProp of its own."""

    def build(self, features: int, actions: int, key: Key) -> Head:
        network_key, proposal_key = jax.random.split(key)
        network = self._build_network(features, actions, network_key)
        proposal = Linear(features, self.quantiles, proposal_key)
        # Nearly even fractions to start with.
        proposal = eqx.tree_at(lambda layer: layer.weight, proposal, replace_fn=lambda w: 0.01 * w)
        return _ProposalHead(network, proposal, self.entropy)

    def own_optimiser(self) -> optax.GradientTransformation:
        return optax.rmsprop(self.proposal_rate, decay=0.95, eps=1e-5, centered=True)

    def own_parameters(self, head: Head) -> PyTree:
        assert isinstance(head, _ProposalHead)
        return head.proposal
