"""A chain of two states with known laws, and small agents that learn it."""

import jax
import jax.numpy as jnp
import optax

from umdqn.agents.agent import Agent
from umdqn.agents.algorithms import ALGORITHMS
from umdqn.decisions.mean import Mean
from umdqn.exploration.epsilon_greedy import EpsilonGreedy
from umdqn.laws.support import Support
from umdqn.metrics import METRICS
from umdqn.networks.torsos import Mlp
from umdqn.optimisers.optimiser import Optimiser
from umdqn.replay.transition import Batch, Transition
from umdqn.representations import REPRESENTATIONS
from umdqn.specs import Domain, EnvSpec, Observation
from umdqn.supports.fixed import FixedSupport
from umdqn.supports.support_rule import SupportRule
from umdqn.targets.periodic import Periodic

DOMAIN = Domain(-2.0, 2.0)
SUPPORT = Support.of(DOMAIN)
CHAIN = EnvSpec(
    name="chain",
    family="chain",
    num_actions=2,
    observation=Observation((1,), "float32", (0.0,), (1.0,)),
    discount=0.5,
    domain=DOMAIN,
    time_limit=2,
    action_names=("0", "1"),
)


def chain_batch(key, noise: float) -> Batch:
    """From state 0 to state 1 for nothing, and from there to the end.

    Action 0 then pays 1.2 or -0.8, action 1 pays -0.5, plus noise.
    """
    state_key, reward_key, noise_key, action_key = jax.random.split(key, 4)
    last = jax.random.bernoulli(state_key, shape=(32,)).astype(jnp.float32)
    action = jax.random.randint(action_key, (32,), 0, 2)
    gamble = jnp.where(jax.random.bernoulli(reward_key, shape=(32,)), 1.2, -0.8)
    reward = jnp.where(action == 0, gamble, -0.5) + noise * jax.random.normal(noise_key, (32,))
    discount = 0.5 * (1 - last)
    seen = Transition(last[:, None], action, last * reward, discount, jnp.ones((32, 1)))
    return Batch(seen, jnp.arange(32), jnp.ones(32))


def made(
    representation, metric, widths, optimiser, double=False, support: SupportRule | None = None
) -> Agent:
    """An agent of the chain; its laws are resolved on the domain unless told."""
    support = FixedSupport() if support is None else support
    return Agent(
        spec=CHAIN,
        domain=DOMAIN if support.needs_domain else None,
        support=support,
        representation=representation,
        metric=metric,
        decision=Mean(),
        torso=Mlp(widths),
        optimiser=Optimiser.adopt(optimiser),
        target=Periodic(100),
        exploration=EpsilonGreedy(),
        double=double,
        updates=1,
        update_every=1,
    )


def parts(name):
    """The representation and the metric of an algorithm."""
    representation, metric, _, fields = ALGORITHMS[name]
    of_metric = {path.removeprefix("metric."): value for path, value in fields.items()}
    return REPRESENTATIONS[representation](), METRICS[metric](**of_metric)


def agent_of(name, **options) -> Agent:
    return made(*parts(name), (16,), optax.adam(1e-3), **options)
