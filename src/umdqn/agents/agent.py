"""The agent as a pure triple `init / act / learn` over a state that is a value (algorithm 1)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree, Shaped

from umdqn.laws import Head, Law, Representation, bellman
from umdqn.metrics import Metric
from umdqn.networks import Convolutions, Torso
from umdqn.types import Domain, EnvSpec, Key, Transition


class Network(eqx.Module):
    """Torso and head: from one observation to laws."""

    torso: Torso
    head: Head

    def laws(self, observation: Shaped[Array, "..."]) -> Law:
        """The laws of all actions, on a leading axis."""
        return self.head.laws(self.torso(observation))

    def law(self, observation: Shaped[Array, "..."], action: Int[Array, ""]) -> Law:
        """The law of one action."""
        return self.head.law(self.torso(observation), action)


class AgentState(NamedTuple):
    """All that learning changes."""

    params: PyTree
    target_params: PyTree
    optimiser: PyTree
    updates: Int[Array, ""]


@dataclasses.dataclass(frozen=True)
class Agent:
    """A representation trained with a metric."""

    spec: EnvSpec
    domain: Domain
    representation: Representation
    metric: Metric
    torso: tuple[int, ...]
    """Widths of the layers that embed the observation."""
    optimiser: optax.GradientTransformation
    sync_every: int
    """Updates between two copies of the parameters into the target network."""
    convolutions: Convolutions = "auto"
    double: bool = False
    """Whether the main network chooses the next action that the target network evaluates."""
    network: Callable[[PyTree], Network] = dataclasses.field(init=False)
    """The network with given parameters."""
    updater: optax.GradientTransformation = dataclasses.field(init=False)
    """The optimiser, together with the representation's own if it has one."""

    def __post_init__(self) -> None:
        template = eqx.filter_eval_shape(self._fresh_network, jax.random.key(0))
        static = eqx.filter(template, lambda leaf: not isinstance(leaf, jax.ShapeDtypeStruct))
        object.__setattr__(self, "network", lambda params: eqx.combine(params, static))
        own = self.representation.own_optimiser()
        groups = {"shared": self.optimiser, "own": own}
        updater = self.optimiser if own is None else optax.partition(groups, self._groups)
        object.__setattr__(self, "updater", updater)

    def _groups(self, params: Network) -> PyTree:
        """Which optimiser trains which parameter."""
        shared = jax.tree.map(lambda _: "shared", params)
        return eqx.tree_at(
            lambda network: self.representation.own_parameters(network.head),
            shared,
            replace_fn=lambda part: jax.tree.map(lambda _: "own", part),
        )

    def _fresh_network(self, key: Key) -> Network:
        torso_key, head_key = jax.random.split(key)
        torso = Torso(self.spec.observation, self.convolutions, self.torso, torso_key)
        actions = self.spec.num_actions
        head = self.representation.build(self.torso[-1], actions, self.domain, head_key)
        return Network(torso, head)

    def init(self, key: Key) -> AgentState:
        """A fresh state; the target network starts equal to the main one."""
        params = eqx.filter(self._fresh_network(key), eqx.is_array)
        return AgentState(params, params, self.updater.init(params), jnp.int32(0))

    def laws(self, params: PyTree, observation: Shaped[Array, "..."]) -> Law:
        """The laws of all actions, on a leading axis."""
        return self.network(params).laws(observation)

    def greedy(self, params: PyTree, observation: Shaped[Array, "..."]) -> Int[Array, ""]:
        """The action of largest expected return."""
        return best_action(self.laws(params, observation))

    def act(
        self,
        params: PyTree,
        observation: Shaped[Array, "..."],
        epsilon: Float[Array, ""] | float,
        key: Key,
    ) -> Int[Array, ""]:
        """Epsilon-greedy action; the network is not evaluated where the action is random."""
        coin, choice = jax.random.split(key)
        return jax.lax.cond(
            jax.random.uniform(coin) < epsilon,
            lambda: jax.random.randint(choice, (), 0, self.spec.num_actions),
            lambda: self.greedy(params, observation),
        )

    def loss(
        self,
        params: PyTree,
        target_params: PyTree,
        batch: Transition,
        key: Key,
    ) -> Float[Array, ""]:
        """Average distance of the predicted laws from their Bellman targets."""
        network, target_network = self.network(params), self.network(target_params)

        def one(transition: Transition, points: PyTree) -> Float[Array, ""]:
            following = self._next_law(network, target_network, transition.next_observation)
            terminal = self.metric.terminal(following, transition.reward, self.domain)
            target = bellman(following, transition.reward, transition.discount, terminal)
            features = network.torso(transition.observation)
            prediction = network.head.law(features, transition.action)
            distance = self.metric(target, prediction, points, self.domain)
            return distance + network.head.own_loss(features, transition.action, prediction)

        def draw(key: Key) -> PyTree:
            return self.metric.draw(key, self.domain)

        if self.metric.per_transition:
            points = jax.vmap(draw)(jax.random.split(key, batch.action.shape[0]))
            return jnp.mean(jax.vmap(one)(batch, points))
        return jnp.mean(jax.vmap(one, in_axes=(0, None))(batch, draw(key)))

    def _next_law(
        self, network: Network, target_network: Network, observation: Shaped[Array, "..."]
    ) -> Law:
        """The law of the next state's greedy action."""
        if self.double:
            action = best_action(network.laws(observation))
            law = target_network.law(observation, action)
        else:
            laws = target_network.laws(observation)
            law = laws[best_action(laws)]
        return jax.lax.stop_gradient(law)

    def learn(
        self, state: AgentState, batch: Transition, key: Key
    ) -> tuple[AgentState, Float[Array, ""]]:
        """One update from a batch, and its loss."""
        loss, gradient = jax.value_and_grad(self.loss)(
            state.params, state.target_params, batch, key
        )
        steps, optimiser = self.updater.update(gradient, state.optimiser, state.params)
        params = optax.apply_updates(state.params, steps)
        updates = state.updates + 1
        sync = updates % self.sync_every == 0
        target_params = jax.tree.map(
            lambda new, old: jnp.where(sync, new, old), params, state.target_params
        )
        return AgentState(params, target_params, optimiser, updates), loss


def best_action(laws: Law) -> Int[Array, ""]:
    """The action whose law has the largest value; the first one on a tie."""
    return jnp.argmax(laws.value)
