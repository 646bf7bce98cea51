"""The agent as a pure triple `init / act / learn` over a state that is a value (algorithm 1)."""

from __future__ import annotations

import dataclasses
from functools import cached_property

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree, Shaped

from umdqn.agents.fixed import FixedPolicy
from umdqn.agents.network import Network, features_of
from umdqn.agents.state import AgentState, Learned, Outcome
from umdqn.decisions import DECISIONS
from umdqn.decisions.decision import Decision
from umdqn.errors import UmdqnError
from umdqn.exploration import EXPLORATIONS
from umdqn.exploration.exploration import Exploration, Moment
from umdqn.laws.bellman import bellman
from umdqn.laws.law import Law
from umdqn.laws.trained import TrainedLaw
from umdqn.metrics.metric import Comparison, Metric
from umdqn.networks.normalised import Normalised, check_numbers, seen_after
from umdqn.networks.torso import Embedding, Torso
from umdqn.optimisers.optimiser import Optimiser
from umdqn.replay.transition import Batch, Transition
from umdqn.representations.representation import Representation
from umdqn.specs import Domain, EnvSpec, Key
from umdqn.supports.support_rule import Placer, SupportRule, TargetMoments, Unit
from umdqn.targets.target import TargetUpdate


@dataclasses.dataclass(frozen=True)
class Agent:
    """Parts put together. Equal parts make equal agents, so that programs compile once."""

    spec: EnvSpec
    domain: Domain | None
    support: SupportRule
    representation: Representation
    metric: Metric
    decision: Decision
    torso: Torso
    optimiser: Optimiser
    target: TargetUpdate
    exploration: Exploration
    double: bool
    """Whether the trained network chooses the next action that the target network evaluates."""
    updates: int
    """Updates of the run, which a falling learning rate depends on; otherwise 0, so that runs of
    other lengths share compiled programs."""
    update_every: int
    """Environment steps between two updates."""
    normalise: bool = False
    """Whether the torso sees numbers of observations by their running mean and deviation."""
    policy: FixedPolicy | None = None
    """Fixed policy that is followed and whose laws are learned; None: the agent's greedy one."""

    @cached_property
    def _static(self) -> PyTree:
        """The network without its arrays."""
        template = eqx.filter_eval_shape(self._fresh_network, jax.random.key(0))
        return eqx.filter(template, lambda leaf: not isinstance(leaf, jax.ShapeDtypeStruct))

    @cached_property
    def _comparison(self) -> Comparison:
        found = self.metric.comparison(type(self.representation))
        assert found is not None, "check_pair refuses such pairs"
        return found

    @cached_property
    def _updater(self) -> optax.GradientTransformation:
        """The optimiser, together with the representation's own if it has one."""
        shared, own = self.optimiser.build(self.updates), self.representation.own_optimiser()
        if own is None:
            return shared

        def groups(params: Network) -> PyTree:
            """Which optimiser trains which parameter."""
            return eqx.tree_at(
                lambda network: self.representation.own_parameters(network.head),
                jax.tree.map(lambda _: "shared", params),
                replace_fn=lambda part: jax.tree.map(lambda _: "own", part),
            )

        return optax.partition({"shared": shared, "own": own}, groups)

    def _fresh_network(self, key: Key) -> Network:
        torso_key, head_key, support_key = jax.random.split(key, 3)
        torso = self._torso(torso_key)
        features = features_of(torso, self.spec)
        head = self.representation.build(features, self.spec.num_actions, head_key)
        placer = self.support.build(features, self.spec.num_actions, support_key)
        return Network(torso, placer, head)

    def _torso(self, key: Key) -> Embedding:
        """Return a freshly initialised torso."""
        if self.normalise:
            return Normalised(self.torso, self.spec.observation, key)
        return self.torso.build(self.spec.observation, key)

    def network(self, params: PyTree) -> Network:
        """Return the network with given parameters."""
        return eqx.combine(params, self._static)

    def fresh(self, key: Key) -> Learned:
        """Return what laws are made from before anything is learned."""
        params = eqx.filter(self._fresh_network(key), eqx.is_array)
        return Learned(params, self.support.unit(self.domain, self.representation.bounded))

    def init(self, key: Key) -> AgentState:
        """Return a fresh state; the target network starts equal to the trained one."""
        params, unit = self.fresh(key)
        return AgentState(params, params, unit, self._updater.init(params), jnp.int32(0))

    def check_torso(self) -> None:
        """Raise if the torso does not fit the observations."""
        if self.normalise:
            check_numbers(self.spec.observation)
        features_of(eqx.filter_eval_shape(self._torso, jax.random.key(0)), self.spec)

    def check(self) -> None:
        """Raise if parts do not give what they promise; compiles nothing."""
        self.check_torso()
        key, moment = jax.random.key(0), Moment(jnp.int32(0), jnp.int32(0))
        seen = jax.ShapeDtypeStruct(self.spec.observation.shape, self.spec.observation.dtype)
        learned = jax.eval_shape(self.init, key).learned
        scores = jax.eval_shape(lambda *given: self.scores(self.laws(*given)), learned, seen)
        if scores.shape != (self.spec.num_actions,):
            raise UmdqnError(
                f"decision {DECISIONS.name_of(self.decision)!r} must give one score per law, shape "
                f"({self.spec.num_actions},), not {scores.shape}"
            )
        action = jax.eval_shape(self.follow, jnp.int32(0), moment, key)
        if action.shape or not jnp.issubdtype(action.dtype, jnp.integer):
            raise UmdqnError(
                f"exploration {EXPLORATIONS.name_of(self.exploration)!r} must give one action, a "
                f"whole number, not {action.dtype} of shape {action.shape}"
            )

    def refined(self) -> Agent:
        """Return the same agent with laws as fine as viewers expect."""
        return dataclasses.replace(self, representation=self.representation.refined())

    def laws(self, learned: Learned, observation: Shaped[Array, "..."]) -> TrainedLaw:
        """Return the laws of all actions, on a leading axis."""
        return self.network(learned.params).laws(observation, learned.unit)

    def law(
        self, learned: Learned, observation: Shaped[Array, "..."], action: Int[Array, ""]
    ) -> TrainedLaw:
        """Return the law of one action."""
        return self.network(learned.params).law(observation, action, learned.unit)

    def scores(self, laws: Law) -> Float[Array, "*laws"]:
        """Return what a greedy choice compares."""
        return self.decision.scores(laws.confined())

    def greedy(self, learned: Learned, observation: Shaped[Array, "..."]) -> Int[Array, ""]:
        """Return the action with the largest score (the first on a tie), or the fixed policy's."""
        if self.policy is not None:
            return self.policy.act(observation)
        return jnp.argmax(self.scores(self.laws(learned, observation))).astype(jnp.int32)

    def act(
        self, learned: Learned, observation: Shaped[Array, "..."], moment: Moment, key: Key
    ) -> Int[Array, ""]:
        """Return the exploring action."""
        if self.policy is not None:
            return self.follow(self.policy.act(observation), moment, key)
        return self.exploration.act(
            key,
            moment,
            self.spec.num_actions,
            lambda: self.scores(self.laws(learned, observation)),
        )

    def follow(self, action: Int[Array, ""], moment: Moment, key: Key) -> Int[Array, ""]:
        """Return a given action, or an exploring one in its place."""
        count = self.spec.num_actions
        return self.exploration.act(key, moment, count, lambda: jax.nn.one_hot(action, count))

    def random(self, moment: Moment, key: Key) -> Int[Array, ""]:
        """Return an action of the warm-up."""
        return self.exploration.random(key, moment, self.spec.num_actions)

    def losses(
        self, params: PyTree, state: AgentState, batch: Transition, key: Key
    ) -> tuple[Float[Array, "batch"], tuple[TargetMoments, Float[Array, "batch"]]]:
        """Return the loss of each transition, its target's moments, and mass at edges of laws."""
        network, target_network = self.network(params), self.network(state.target_params)
        compare = self._comparison

        def one(
            transition: Transition, points: PyTree
        ) -> tuple[Array, tuple[TargetMoments, Array]]:
            following = self._next_law(network, target_network, transition, state.unit)
            return self._loss(network, state.unit, transition, following, points)

        if self.metric.per_transition:
            points = jax.vmap(compare.draw)(jax.random.split(key, batch.action.shape[0]))
            return jax.vmap(one)(batch, points)
        return jax.vmap(one, in_axes=(0, None))(batch, compare.draw(key))

    def _loss(
        self,
        network: Network,
        unit: Unit,
        transition: Transition,
        following: TrainedLaw,
        points: PyTree,
    ) -> tuple[Float[Array, ""], tuple[TargetMoments, Float[Array, ""]]]:
        """The loss of one transition, given the law of what follows it."""
        action, shaped, compare = transition.action, self.representation.shaped, self._comparison
        features = network.features(transition.observation)
        support = network.supports(features, unit)[action]
        resolved = jax.lax.stop_gradient(support)
        prediction = network.head.law(features, action, resolved if shaped else support)
        terminal = compare.terminal(transition.reward, resolved)
        target = bellman(following, transition.reward, transition.discount, terminal)
        loss = compare(target, prediction, points, resolved)
        loss = loss + network.head.own_loss(features, action, prediction, support)
        mean = transition.reward + transition.discount * following.confined().mean
        placing = TargetMoments(
            mean,
            transition.discount**2 * following.variance if support.open else mean,
            jax.lax.stop_gradient(mean - prediction.mean),
            transition.discount,
            mean if resolved.moments is None else resolved.moments.std**2,
        )
        if shaped:
            loss = loss + self.support.loss(support, placing, unit)
        edge = prediction.edge_mass
        return loss, (placing, jnp.float32(0) if edge is None else jax.lax.stop_gradient(edge))

    def _next_law(
        self,
        network: Network,
        target_network: Network,
        transition: Transition,
        unit: Unit,
    ) -> TrainedLaw:
        """The law of the next state's greedy action, or of the fixed policy's; without gradient."""
        observation, given = transition.next_observation, transition.next_action
        if self.policy is not None and given is not None:
            law = target_network.law(observation, given, unit)
        elif self.double:
            action = jnp.argmax(self.scores(network.laws(observation, unit)))
            law = target_network.law(observation, action, unit)
        else:
            laws = target_network.laws(observation, unit)
            law = laws[jnp.argmax(self.scores(laws))]  # type: ignore[assignment]
        return jax.lax.stop_gradient(law)

    def learn(self, state: AgentState, batch: Batch, key: Key) -> tuple[AgentState, Outcome]:
        """Return the state after one update from a batch, and its losses."""

        def mean_loss(params: PyTree) -> tuple[Float[Array, ""], PyTree]:
            losses, others = self.losses(params, state, batch.transition, key)
            return jnp.mean(batch.weight * losses), (losses, *others)

        gradient, (losses, targets, edges) = jax.grad(mean_loss, has_aux=True)(state.params)
        steps, optimiser = self._updater.update(gradient, state.optimiser, state.params)
        params = optax.apply_updates(state.params, steps)
        updates = state.updates + 1
        target_params = self.target.update(params, state.target_params, updates, self.update_every)
        unit = self.support.follow(state.unit, targets)
        params, target_params = (
            eqx.tree_at(_placer, each, _placer(each).rescaled(state.unit, unit))
            for each in (params, target_params)
        )
        if self.normalise:
            seen = seen_after(self.network(state.params).torso, batch.transition.observation)
            params, target_params = (
                eqx.tree_at(_statistics, each, seen) for each in (params, target_params)
            )
        state = AgentState(params, target_params, unit, optimiser, updates)
        return state, Outcome(
            jnp.mean(batch.weight * losses),
            losses,
            self.optimiser.clips(gradient),
            jnp.mean(edges),
        )


def _placer(network: Network) -> Placer:
    return network.placer


def _statistics(network: Network) -> PyTree:
    return network.torso.seen  # type: ignore[attr-defined]
