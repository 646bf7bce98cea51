"""Every algorithm: what it learns on a chain with a known law, and parity with RLax."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import rlax
from jax.extend.core import jaxprs_in_params
from scipy import stats

from chain import SUPPORT, agent_of, chain_batch, made, parts
from quick import quick
from umdqn.agents.algorithms import ALGORITHMS
from umdqn.agents.state import Learned
from umdqn.laws.atoms import Atoms, even_positions, project
from umdqn.laws.bellman import bellman
from umdqn.laws.law import Law
from umdqn.laws.particles import Particles
from umdqn.metrics.kl import KL
from umdqn.metrics.mean import Mean
from umdqn.metrics.mmd import Mmd
from umdqn.metrics.wasserstein import Wasserstein
from umdqn.networks.dense import Linear
from umdqn.representations.discrete import Categorical, Expectation, Quantiles
from umdqn.representations.proposed import ProposedQuantiles, fraction_gradient
from umdqn.supports import SUPPORTS


def learned(representation, metric, noise: float, updates: int, **options) -> list[Law]:
    """The laws that an agent has learned of the chain: both actions of both states."""
    adam = optax.adam(optax.cosine_decay_schedule(3e-3, updates))
    agent = made(representation, metric, (64,), adam, **options)

    @jax.jit
    def train(key):
        def step(i, state):
            batch_key, learn_key = jax.random.split(jax.random.fold_in(key, i))
            return agent.learn(state, chain_batch(batch_key, noise), learn_key)[0]

        return jax.lax.fori_loop(0, updates, step, agent.init(key))

    state = train(jax.random.key(3))
    laws = [agent.laws(state.learned, jnp.array([x])).settled() for x in (0.0, 1.0)]
    return [laws[0][0], laws[0][1], laws[1][0], laws[1][1]]


def small(name):
    """The algorithm with a threshold small enough for quantiles, and kernels as fine as the law."""
    representation, metric = parts(name)
    changes = {"points": 16 if metric.per_transition else min(metric.points, 64)}
    if isinstance(metric, Wasserstein):
        changes |= {"kappa": 0.02}
    if isinstance(metric, Mmd):
        representation = Quantiles(quantiles=40)
        changes |= {"bandwidths": (0.02, 0.2, 2.0)}
    if hasattr(metric, "root"):
        changes |= {"root": False}
    return representation, dataclasses.replace(metric, **changes)


# Those that take longest; the quick ones cover the same parts.
_SLOW = ("iqn", "fqf", "umdqn-w", "umdqn-kl", "nc-qr-dqn", "mmdqn")
_CHAINED = [pytest.param(n, marks=[pytest.mark.slow] if n in _SLOW else []) for n in ALGORITHMS]


@pytest.mark.parametrize("support", quick(SUPPORTS, ["learned"]))
@pytest.mark.parametrize("name", _CHAINED)
def test_every_algorithm_learns_the_law_of_a_chain(name, support):
    laws = learned(*small(name), noise=0.1, updates=4_000, support=SUPPORTS[support]())
    z = np.linspace(-3, 3, 3_001)
    gamble = [(1.2, 0.1), (-0.8, 0.1)]
    later = [(0.6, 0.05), (-0.4, 0.05)]
    for law, modes in zip(laws, (later, later, gamble, [(-0.5, 0.1)]), strict=True):
        # 4,000 updates see each mode 16,000 times; the rest is the optimiser's.
        assert float(law.mean) == pytest.approx(np.mean([m for m, _ in modes]), abs=0.08)
        if name == "dqn":
            continue
        exact = np.mean([stats.norm(*mode).cdf(z) for mode in modes], axis=0)
        gap = np.asarray(law.cdf(jnp.asarray(z, jnp.float32))) - exact
        # A law that had lost its modes would be 1 or 0.5 away.
        assert np.trapezoid(np.abs(gap), z) < 0.15 * (1.0 if modes is gamble else 0.5)


def test_a_large_threshold_learns_expectiles_not_quantiles():
    """With kappa above the range the Huber loss is quadratic, and its minimisers are expectiles.

    Of 0.2 -+ 1 these are 0.2 + 2 tau - 1, a uniform law; pushed forward, those of the uniform law
    on 0.1 -+ 1/2 solve tau (1/2 - q)^2 = (1 - tau) (1/2 + q)^2, with q counted from 0.1.
    """
    metric = Wasserstein(kappa=10.0)
    first, _, last, _ = learned(Quantiles(quantiles=50), metric, noise=0.0, updates=6_000)
    tau = (np.arange(50) + 0.5) / 50
    odds = np.sqrt((1 - tau) / tau)
    assert np.abs(np.asarray(last.positions) - (2 * tau - 0.8)).mean() < 0.06
    assert np.abs(np.asarray(first.positions) - 0.1 - 0.5 * (1 - odds) / (1 + odds)).mean() < 0.04
    # The true standard deviations are 1 and 1/2.
    assert float(last.std) == pytest.approx(np.sqrt(1 / 3), rel=0.1)


def test_projection_is_that_of_rlax():
    rng = np.random.default_rng(0)
    for _ in range(20):
        positions = jnp.asarray(np.sort(rng.normal(scale=2.0, size=30)), jnp.float32)
        weights = jnp.asarray(rng.dirichlet(np.ones(30)), jnp.float32)
        ours = project(Particles(positions, weights), even_positions(SUPPORT, 51))
        theirs = rlax.categorical_l2_project(positions, weights, jnp.linspace(-2, 2, 51))
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_projection_by_hand():
    # Support -2, -1, 0, 1, 2: 0.25 goes three quarters to 0, 5 to the upper end.
    particles = Particles(jnp.array([0.25, 5.0]), jnp.array([0.8, 0.2]))
    masses = project(particles, even_positions(SUPPORT, 5))
    np.testing.assert_allclose(masses, [0, 0, 0.6, 0.2, 0.2], atol=1e-6)


def mean_loss(agent, params, target, batch, key) -> float:
    """The loss of parameters with a target network, averaged over a batch."""
    state = agent.init(jax.random.key(0))._replace(target_params=target)
    return float(jnp.mean(agent.losses(params, state, batch.transition, key)[0]))


def test_categorical_loss_is_the_cross_entropy_of_rlax():
    agent = agent_of("cdqn")
    (params, unit), (target, _) = (agent.fresh(jax.random.key(seed)) for seed in (0, 1))
    batch = chain_batch(jax.random.key(2), 0.1)
    ours = mean_loss(agent, params, target, batch, jax.random.key(3))
    atoms = jnp.linspace(-2.0, 2.0, 51)

    def logits(params, x):
        return jnp.log(agent.laws(Learned(params, unit), x).weights)

    def theirs(transition):
        following = logits(target, transition.next_observation)
        weights = jax.nn.softmax(following)
        q_values = weights @ atoms
        projected = rlax.categorical_l2_project(
            transition.reward + transition.discount * atoms, weights[jnp.argmax(q_values)], atoms
        )
        prediction = logits(params, transition.observation)[transition.action]
        safe = jnp.where(projected > 0, projected, 1.0)
        # Our KL divergence is the cross-entropy less the target's own entropy.
        return -projected @ prediction + projected @ jnp.log(safe)

    assert ours == pytest.approx(float(jnp.mean(jax.vmap(theirs)(batch.transition))), rel=1e-4)


@pytest.mark.parametrize("double", [False, True])
def test_dqn_loss_is_that_of_rlax(double):
    agent = agent_of("dqn", double=double)
    params, unit = agent.fresh(jax.random.key(0))
    # A target network that always prefers the other action.
    target = eqx.tree_at(
        lambda network: network.head.outputs.layer.weight,
        params,
        replace_fn=lambda weight: 1.3 * weight[:, ::-1],
    )
    following = jax.random.uniform(jax.random.key(5), (32, 1), minval=-2.0, maxval=3.0)
    batch = chain_batch(jax.random.key(2), 0.5)
    seen = batch.transition._replace(next_observation=following)

    def q_values(params):
        return jax.vmap(lambda x: agent.laws(Learned(params, unit), x).mean)

    now, later = q_values(params)(seen.observation), q_values(target)(following)
    chooser = q_values(params)(following) if double else later
    # The test means something only where the two networks disagree.
    assert np.any(np.argmax(later, 1) != np.argmax(q_values(params)(following), 1))
    errors = jax.vmap(rlax.double_q_learning)(
        now, seen.action, seen.reward, seen.discount, later, chooser
    )
    expected = float(jnp.mean(rlax.huber_loss(errors, 1.0)))
    ours = mean_loss(agent, params, target, batch._replace(transition=seen), jax.random.key(0))
    assert ours == pytest.approx(expected, rel=1e-5)


def test_fraction_gradient_is_the_slope_of_the_distance():
    """Of Wasserstein-1 between a quantile function and its steps, by finite differences."""

    def quantile(tau):
        return np.sinh(3 * tau - 1)

    def distance(inner):
        edges = np.concatenate([[0.0], inner, [1.0]])
        middles = (edges[1:] + edges[:-1]) / 2
        tau = (np.arange(400_000) + 0.5) / 400_000
        steps = quantile(middles)[np.searchsorted(edges[1:-1], tau)]
        return np.abs(quantile(tau) - steps).mean()

    inner = np.array([0.15, 0.4, 0.75])
    edges = np.concatenate([[0.0], inner, [1.0]])
    ours = fraction_gradient(
        jnp.asarray(quantile(inner), jnp.float32),
        jnp.asarray(quantile((edges[1:] + edges[:-1]) / 2), jnp.float32),
    )
    for i in range(3):
        move = 1e-3 * np.eye(3)[i]
        slope = (distance(inner + move) - distance(inner - move)) / 2e-3
        assert float(ours[i]) == pytest.approx(slope, abs=2e-3)


def test_the_proposal_learns_from_its_own_loss_only():
    head = ProposedQuantiles(quantiles=5, entropy=0.1).build(3, 2, jax.random.key(0))
    features, action = jnp.array([1.0, 2.0, -0.5]), jnp.int32(1)

    def own(head):
        return head.own_loss(features, action, head.law(features, action, SUPPORT), SUPPORT)

    def regressed(head):
        return jnp.sum(head.law(features, action, SUPPORT).positions ** 2)

    of_own, of_law = jax.grad(own)(head), jax.grad(regressed)(head)
    assert float(jnp.abs(of_own.proposal.weight).max()) > 0
    assert all(float(jnp.abs(x).max()) == 0 for x in jax.tree.leaves(of_own.network))
    assert all(float(jnp.abs(x).max()) == 0 for x in jax.tree.leaves(of_law.proposal))
    assert float(jnp.abs(of_law.network.output.weight).max()) > 0


def test_even_fractions_earn_their_entropy():
    """Whose weight multiplies `-sum p log p` of the shares, in nats."""
    features, action, losses = jnp.array([1.0, 2.0, -0.5]), jnp.int32(1), []
    for entropy in (0.0, 0.7):
        head = ProposedQuantiles(quantiles=5, entropy=entropy).build(3, 2, jax.random.key(0))
        head = eqx.tree_at(lambda head: head.proposal.weight, head, replace_fn=lambda w: 100 * w)
        law = head.law(features, action, SUPPORT)
        losses.append(float(head.own_loss(features, action, law, SUPPORT)))
    expected = stats.entropy(np.asarray(law.weights, float))
    assert expected < 0.95 * np.log(5)
    assert losses[0] - losses[1] == pytest.approx(0.7 * expected, rel=1e-4)


def test_the_proposal_has_its_own_optimiser():
    agent = agent_of("fqf")
    state = agent.init(jax.random.key(0))
    learn = jax.jit(agent.learn)
    after, _ = learn(state, chain_batch(jax.random.key(1), 0.1), jax.random.key(2))

    def moved(part):
        def weights(params):
            return part(agent.network(params).head).weight

        return float(jnp.abs(weights(after.params) - weights(state.params)).max())

    # Adam's first step is its rate, 1e-3; RMSProp's first is rate / sqrt(0.05 * 0.95).
    assert moved(lambda head: head.network.output) == pytest.approx(1e-3, rel=0.05)
    assert 0 < moved(lambda head: head.proposal) <= 1e-5 / np.sqrt(0.05 * 0.95) * 1.01
    assert isinstance(agent.network(state.params).head.proposal, Linear)


def test_mmd_by_hand():
    # X at 0 and 1, Y at 1: E k(X, X') = (1 + e^-1) / 2, E k(X, Y) = (e^-1 + 1) / 2, E k(Y, Y) = 1.
    x = Atoms(jnp.array([0.0, 1.0]), jnp.array([0.5, 0.5]))
    y = Atoms(jnp.array([1.0]), jnp.array([1.0]))
    compare = Mmd(bandwidths=(1.0,)).comparison(Quantiles)
    points = compare.draw(jax.random.key(0))
    expected = (1 + np.exp(-1)) / 2 - 2 * (1 + np.exp(-1)) / 2 + 1
    assert float(compare(y, x, points, SUPPORT)) == pytest.approx(expected, rel=1e-5)
    assert float(compare(x, x, points, SUPPORT)) == pytest.approx(0, abs=1e-6)


def test_mean_loss_by_hand():
    def atom(z):
        return Atoms(jnp.array([z]), jnp.ones(1))

    compare = Mean().comparison(Expectation)
    for gap, expected in ((0.5, 0.125), (3.0, 2.5)):
        loss = compare(atom(1.0 + gap), atom(1.0), None, SUPPORT)
        assert float(loss) == pytest.approx(expected)


def test_a_terminal_target_of_masses_is_the_reward():
    """No smoothing is needed where the target is projected."""
    agent = agent_of("cdqn")
    law = agent.laws(agent.init(jax.random.key(0)).learned, jnp.zeros(1))[0]
    reward = jnp.float32(0.96)
    assert KL().comparison(Categorical).terminal(reward, SUPPORT) is None
    target = bellman(law, reward, jnp.float32(0.0))
    masses = project(target.particles(jnp.zeros(1)), even_positions(SUPPORT, 51))
    assert float(masses[37]) == pytest.approx(1.0, abs=1e-5)  # -2 + 37 * 0.08


def products(jaxpr):
    """The precision of every matrix product of a program, also inside of its functions."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            yield equation.params["precision"]
        for inner in jaxprs_in_params(equation.params):
            yield from products(inner)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_matrix_products_are_exact_on_accelerators(name):
    agent = agent_of(name)
    state = jax.eval_shape(agent.init, jax.random.key(0))
    batch = chain_batch(jax.random.key(0), 0.1)
    found = list(products(jax.make_jaxpr(agent.learn)(state, batch, jax.random.key(1)).jaxpr))
    assert len(found) > 5
    highest = jax.lax.Precision.HIGHEST
    assert set(found) == {(highest, highest)}
