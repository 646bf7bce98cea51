"""Supports: laws have the learned moments, units follow the targets, whatever their size."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from chain import made, parts
from quick import quick
from umdqn.agents.algorithms import ALGORITHMS
from umdqn.errors import InvalidField, Notice
from umdqn.figures.watching import Scene, _laws
from umdqn.laws.flow import FlowLaw, Logistic, Normal
from umdqn.laws.quantile import QuantileLaw
from umdqn.laws.support import Moments, Support
from umdqn.numerics.table import MonotoneTable
from umdqn.replay.transition import Batch, Transition
from umdqn.representations import REPRESENTATIONS
from umdqn.representations.representation import misfit
from umdqn.runs.configure import configure
from umdqn.specs import Domain
from umdqn.supports import SUPPORTS
from umdqn.supports.fixed import FixedSupport
from umdqn.supports.learned import LearnedSupport
from umdqn.supports.support_rule import TargetMoments, Unit

MEANS, STDS = np.array([-3.0, 0.0, 1e4]), np.array([0.02, 5.0, 100.0])
SMALL = {
    "umnn-pdf": {"hidden": (8,), "intervals": 40},
    "umnn-cdf": {"hidden": (8,), "intervals": 40},
    "umnn-qf": {"hidden": (8,), "intervals": 40},
    "expectation": {},
    "categorical": {"atoms": 21},
    "quantiles": {"quantiles": 16},
    "non-crossing-quantiles": {"quantiles": 16},
    "implicit-quantiles": {"cosines": 8, "hidden": 8, "value_fractions": 8},
    "proposed-quantiles": {"cosines": 8, "hidden": 8, "quantiles": 8},
}


def learned_support(count: int = 3) -> Support:
    mean, std = (jnp.asarray(numbers[:count], jnp.float32) for numbers in (MEANS, STDS))
    return Support(mean, 6 * std, Moments(mean, std))


def random_table(seed: int, slope: float, intervals: int = 200) -> MonotoneTable:
    """Three increasing functions through 0 in the middle, each with slopes of its own."""
    random = np.random.default_rng(seed)
    slopes = slope * np.exp(0.7 * random.normal(size=(3, intervals + 1)))
    rises = (slopes[:, 1:] + slopes[:, :-1]) / intervals
    heights = np.pad(np.cumsum(rises, axis=1), ((0, 0), (1, 0)))
    heights -= heights[:, intervals // 2, None]
    numbers = (heights, slopes, slopes[:, 0] + 10, slopes[:, -1] + 10)
    return MonotoneTable(*(jnp.asarray(each, jnp.float32) for each in numbers))


def moments_by_cdf(law, reach: float = 40.0) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation, from the CDF alone: `int z dF` by parts, at many points."""
    steps = np.linspace(-reach, reach, 160_001)
    cdf = jax.jit(lambda law, z: law.cdf(z))
    means, stds = [], []
    for index, (centre, scale) in enumerate(zip(MEANS, STDS, strict=True)):
        z = (centre + scale * steps).astype(np.float32)
        reached = np.asarray(cdf(law[index], jnp.asarray(z)), float)
        exact = np.asarray((z - np.float32(centre)) / scale, float)
        above = np.where(exact > 0, 1.0, 0.0) - reached
        mean = np.trapezoid(above, exact)
        square = np.trapezoid(2 * exact * above, exact)
        means.append(mean)
        stds.append(np.sqrt(square - mean**2))
    return np.array(means), np.array(stds)


@pytest.mark.parametrize("kind", ["logistic", "normal", "quantile"])
@pytest.mark.parametrize("seed", [0, 1])
def test_continuous_laws_have_the_learned_moments(kind, seed):
    """Within 0.1% of a standard deviation: the trapezoid rule over 200 cells, 1e-4 in tails."""
    if kind == "quantile":
        law = QuantileLaw.of(random_table(seed, 0.5), learned_support())
    else:
        link = Logistic() if kind == "logistic" else Normal()
        law = FlowLaw.of(random_table(seed, 8.0), learned_support(), link)
    np.testing.assert_array_equal(law.mean, MEANS.astype(np.float32))
    np.testing.assert_allclose(law.std, STDS, rtol=1e-5)
    means, stds = moments_by_cdf(law)
    # In standard deviations from the learned mean.
    np.testing.assert_allclose(means, 0, atol=1e-3)
    np.testing.assert_allclose(stds, 1, atol=1e-3)
    # Nothing is held up at the bounds of a support that follows what is learned.
    assert law.edge_mass is None
    # No mass is lost to rounding, narrow though a law may be and far from 0.
    ends = np.stack([law[i].cdf(MEANS[i] + STDS[i] * np.array([-60, 60])) for i in range(3)])
    np.testing.assert_allclose(ends, np.tile([0, 1], (3, 1)), atol=1e-6)


@pytest.mark.parametrize("name", ["categorical", "quantiles", "non-crossing-quantiles"])
def test_atoms_have_the_learned_moments(name):
    """Exactly, but for float32 and the 1e-4 by which the spread of a shape is kept off zero."""
    head = REPRESENTATIONS[name](**SMALL[name]).build(4, 3, jax.random.key(0))
    law = head.laws(3 * jax.random.normal(jax.random.key(1), (4,)), learned_support())
    positions = np.asarray(law.positions, float)
    weights = np.asarray(law.weights, float)
    means = np.sum(weights * positions, axis=1) / weights.sum(axis=1)
    stds = np.sqrt(np.sum(weights * (positions - means[:, None]) ** 2, axis=1))
    # Float32 rounds 1e4 to 1e-3, a hundred-thousandth of the standard deviation there.
    np.testing.assert_allclose((means - MEANS) / STDS, 0, atol=2e-4)
    np.testing.assert_allclose(stds / STDS, 1, atol=1e-4)
    np.testing.assert_allclose((law.mean - MEANS) / STDS, 0, atol=2e-4)


def test_a_shape_without_spread_has_the_learned_mean():
    table = MonotoneTable(jnp.zeros((3, 21)), *(jnp.full(s, 1e-5) for s in ((3, 21), 3, 3)))
    law = QuantileLaw.of(table, learned_support())
    np.testing.assert_array_equal(law.mean, MEANS.astype(np.float32))
    assert np.isfinite(law.quantile(jnp.asarray([0.1, 0.9]))).all()


def test_proposals_do_not_depend_on_where_a_law_lies():
    """The fractions of FQF follow the shape: its support is neither seen nor moved by them."""
    head = REPRESENTATIONS["proposed-quantiles"](**SMALL["proposed-quantiles"]).build(
        4, 3, jax.random.key(0)
    )
    features, action = jax.random.normal(jax.random.key(1), (4,)), jnp.int32(1)
    fixed = Support(jnp.float32(0.0), jnp.float32(1.0))

    def gradient(support):
        def loss(head):
            return head.own_loss(features, action, head.law(features, action, support), support)

        return jax.grad(loss)(head).proposal.weight

    expected = gradient(fixed)
    assert float(jnp.abs(expected).max()) > 0
    for index in range(3):
        np.testing.assert_allclose(gradient(learned_support()[index]), expected, rtol=1e-5)


def test_shapes_pay_for_leaving_their_support_and_do_not_move_it():
    """`0.1 ((reach mean)^2 + log(reach std)^2)`, with a reach of 6 standard deviations."""
    support, mean, variance = learned_support()[1], jnp.float32(0.25), jnp.float32(0.04)
    expected = 0.1 * ((6 * 0.25) ** 2 + np.log(6 * 0.2) ** 2)
    assert float(misfit(mean, variance, support)) == pytest.approx(expected, rel=1e-5)
    slope = jax.grad(lambda support: misfit(mean, variance, support))(support)
    assert not any(np.any(leaf) for leaf in jax.tree.leaves(slope))
    # That of masses at 21 atoms from -1 to 1.
    head = REPRESENTATIONS["categorical"](atoms=21).build(4, 3, jax.random.key(0))
    features, action = 3 * jax.random.normal(jax.random.key(1), (4,)), jnp.int32(1)
    law = head.law(features, action, support)
    nodes, masses = np.linspace(-1, 1, 21), np.asarray(law.weights, float)
    mean = masses @ nodes
    expected = (6 * mean) ** 2 + np.log(6 * np.sqrt(masses @ (nodes - mean) ** 2)) ** 2
    found = head.own_loss(features, action, law, support)
    assert float(found) == pytest.approx(0.1 * expected, rel=1e-3)


@pytest.mark.parametrize("double", [False, True])
def test_targets_have_the_moments_of_the_bellman_equation(double):
    """`r + g m'` and `g^2 v'`, of the law that the network or its target network prefers."""
    representation, metric = parts("qr-dqn")
    representation = dataclasses.replace(representation, quantiles=8)
    rule = LearnedSupport()
    agent = made(representation, metric, (8,), optax.adam(1e-3), double=double, support=rule)
    state, other = (agent.init(jax.random.key(seed)) for seed in (0, 1))
    state = state._replace(target_params=other.params)
    batch = transitions(ALTERNATING, 0.9).transition
    _, (targets, _) = jax.jit(agent.losses)(state.params, state, batch, jax.random.key(2))
    own, following = agent.network(state.params), agent.network(state.target_params)
    mean, variance, predicted = np.zeros((3, 8))
    for row in range(8):
        laws = following.laws(batch.next_observation[row], state.unit)
        prefers = own.laws(batch.next_observation[row], state.unit) if double else laws
        best = int(np.argmax(prefers.mean))
        mean[row], variance[row] = laws[best].mean, laws[best].variance
        predicted[row] = own.laws(batch.observation[row], state.unit)[row % 2].mean
    expected = ALTERNATING + 0.9 * mean
    np.testing.assert_allclose(targets.mean, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(targets.variance, 0.81 * variance, rtol=1e-4)
    np.testing.assert_allclose(targets.error, expected - predicted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(targets.discount, np.full(8, 0.9), rtol=1e-6)


def batches(seed: int, count: int, size: float) -> TargetMoments:
    """Targets of `count` batches of 8, a quarter of them terminal."""
    random = np.random.default_rng(seed)
    mean = size * (1 + random.normal(size=(count, 8)))
    error = size * random.normal(size=(count, 8))
    discount = np.where(random.uniform(size=(count, 8)) < 0.25, 0.0, 0.9)
    claimed = size**2 * random.uniform(size=(count, 8))
    parts = (mean, 0.3 * claimed, error, discount, claimed)
    return TargetMoments(*(jnp.asarray(x, jnp.float32) for x in parts))


def followed(rule: LearnedSupport, targets: TargetMoments) -> Unit:
    def step(unit, one):
        return rule.follow(unit, one), None

    return jax.lax.scan(step, rule.unit(None, True), targets)[0]


@pytest.mark.parametrize("count", [1, 7, 40])
def test_units_are_averages_of_what_was_seen(count):
    """All alike as long as few were seen, exponential ones after that."""
    rule = LearnedSupport(rate=0.1)
    targets = batches(0, count, 3.0)
    unit = followed(rule, targets)
    mean, later, error, discount, claimed = (np.asarray(x, float) for x in targets)
    weights = np.ones(0)
    for number in range(count):
        share = max(1 / (number + 1), rule.rate)
        weights = np.append(weights * (1 - share), share)
    if count <= 10:
        np.testing.assert_allclose(weights, 1 / count)
    centre = weights @ mean.mean(axis=1)
    variance = weights @ (mean**2).mean(axis=1) - centre**2
    squares, kept = weights @ (error**2).mean(axis=1), weights @ (discount**2).mean(axis=1)
    assert float(unit.seen) == count
    assert float(unit.centre) == pytest.approx(centre, rel=1e-4)
    assert float(unit.scale) == pytest.approx(np.sqrt(variance), rel=1e-4)
    # Errors of equal variance at each of all later steps add up, discounted, to this.
    assert float(unit.deviation) == pytest.approx(np.sqrt(squares / (1 - kept)), rel=1e-4)
    excess = weights @ (claimed - later).mean(axis=1)
    assert float(unit.claimed) == pytest.approx(excess, rel=1e-4)
    assert float(unit.credible) == pytest.approx(min(1.0, squares / excess), rel=1e-4)


def test_units_stay_until_a_reward_is_seen():
    rule = LearnedSupport()
    nothing = TargetMoments(*5 * (jnp.zeros((5, 8)),))
    unit = followed(rule, nothing._replace(discount=jnp.full((5, 8), 0.99)))
    assert [float(x) for x in (unit.centre, unit.scale, unit.deviation)] == [0.0, 1.0, 1.0]
    seen = rule.follow(unit, jax.tree.map(lambda each: each[0], batches(0, 1, 100.0)))
    assert float(seen.scale) > 1


@pytest.mark.parametrize("size", [1e6, 1e-6])
@pytest.mark.parametrize("equal", [False, True])
def test_units_of_any_rewards_are_finite(size, equal):
    targets = batches(0, 20, size)
    if equal:
        targets = targets._replace(mean=jnp.full((20, 8), size), error=jnp.zeros((20, 8)))
    unit = followed(LearnedSupport(), targets)
    assert all(np.isfinite(x) for x in unit)
    assert float(unit.scale) > 0
    assert float(unit.deviation) > 0
    assert 0.5 * size < float(unit.centre) < 2 * size


UNITS = {
    "larger": (0.0, 1.0, 50.0, 300.0, 20.0),
    "smaller": (10.0, 8.0, 10.5, 0.01, 0.5),
    "far": (0.0, 1.0, 1e6, 1e5, 1e3),
}


def changed_units(name: str) -> tuple[Unit, Unit]:
    before, scale, centre, after, deviation = UNITS[name]
    first, second = Unit.of(before, scale)._replace(mean=jnp.float32(1)), Unit.of(centre, after)
    return first, second._replace(deviation=jnp.float32(deviation))


def test_means_learned_before_any_reward_was_seen_are_forgotten():
    """They are in no unit: kept, 0.001 would be a thousand times a return of a millionth."""
    placer = LearnedSupport().build(4, 3, jax.random.key(0))
    placer = eqx.tree_at(
        lambda each: each.location,
        placer,
        placer.location.changed(jnp.full((4, 3), 1e-3), jnp.full(3, 1e-3)),
    )
    before = Unit.of(0.0, 1.0)
    after = before._replace(centre=jnp.float32(2e-6), scale=jnp.float32(1e-6))
    moved = placer.rescaled(before, after)
    np.testing.assert_allclose(moved(jnp.ones(4), after).moments.mean, 2e-6, rtol=1e-6)


# IQN's quantiles are relative to where a law lies: their mean is that place only if they say so.
@pytest.mark.parametrize("name", [name for name in SMALL if name != "implicit-quantiles"])
@pytest.mark.parametrize("change", UNITS)
def test_means_stay_when_units_change(name, change):
    before, after = changed_units(change)
    placer = LearnedSupport().build(4, 3, jax.random.key(0))
    weight, bias = jax.random.normal(jax.random.key(1), (4, 3)), jnp.arange(3.0)
    placer = eqx.tree_at(
        lambda placer: placer.location, placer, placer.location.changed(weight, bias)
    )
    head = REPRESENTATIONS[name](**SMALL[name]).build(4, 3, jax.random.key(2))
    features = jax.random.normal(jax.random.key(3), (4,))

    @jax.jit
    def means():
        moved = placer.rescaled(before, after)
        old = head.laws(features, placer(features, before)).mean
        return old, head.laws(features, moved(features, after)).mean

    old, new = means()
    # Sums of float32 of the size of the units, and of their standard deviations.
    size = max(abs(x) for x in UNITS[change])
    np.testing.assert_allclose(new, old, atol=3e-6 * size)
    assert np.ptp(old) > 0.1


def test_the_fixed_support_is_the_domain():
    rule, domain = FixedSupport(), Domain(-3.0, 5.0)
    unit = rule.unit(domain, bounded=True)
    support = rule.build(4, 2, jax.random.key(0))(jnp.zeros(4), unit)
    np.testing.assert_allclose(support.low, [-3.0, -3.0])
    np.testing.assert_allclose(support.high, [5.0, 5.0])
    assert not support.open
    np.testing.assert_array_equal(support.unit, [1.0, 1.0])
    targets = jax.tree.map(lambda each: each[0], batches(0, 1, 1e6))
    assert rule.follow(unit, targets) is unit


@pytest.mark.parametrize(("explained", "share"), [(8.0, 1.0), (4.0, 1.0), (1.0, 0.25)])
@pytest.mark.parametrize("std", [0.01, 1.5, 40.0])
def test_the_gradient_in_the_standard_deviation_by_hand(std, explained, share):
    unit = Unit.of(0.0, 3.0)._replace(deviation=jnp.float32(2.0), claimed=jnp.float32(4.0))
    rule, unit = LearnedSupport(), unit._replace(error=jnp.float32(explained))
    target = TargetMoments(*(jnp.float32(x) for x in (4.0, 0.25, 1.5, 0.9, 7.0)))

    def loss(mean, log_std):
        moments = Moments(mean, jnp.exp(log_std))
        return rule.loss(Support(mean, 6 * moments.std, moments), target, unit)

    of_mean, of_log_std = jax.grad(loss, (0, 1))(jnp.float32(1.0), jnp.log(jnp.float32(std)))
    # Laws that claim four times what errors explain count for a quarter.
    square = 1.5**2 + share * 0.25
    floor = rule.floor * 2.0
    expected = (std**2 - square) / (std**2 + floor**2)
    assert float(of_log_std) == pytest.approx(expected, rel=1e-4)
    # The mean descends to that of the target, in units of the deviation.
    assert float(of_mean) == pytest.approx(-rule.mean_weight * (4.0 - 1.0) / 2.0**2, rel=1e-5)


def test_laws_that_are_all_too_wide_become_narrow():
    """A walk that ends with probability 0.02 a step, for rewards of mean 0 and variance 1.

    The variance of its return is 1 / (1 - 0.98) = 50 without a discount. From ten times the
    deviation, 100 plain backups would leave 50 * (1 + 99 * 0.98**100), 14 times too much.
    """
    rule = LearnedSupport(rate=0.2)
    unit, variance = rule.unit(None, True), jnp.float32(5_000.0)
    random = np.random.default_rng(0)
    for _ in range(100):
        rewards = jnp.asarray(random.normal(size=4_096), jnp.float32)
        goes = jnp.asarray(random.uniform(size=4_096) < 0.98, jnp.float32)
        targets = TargetMoments(rewards, goes * variance, rewards, goes, jnp.full(4_096, variance))
        unit = rule.follow(unit, targets)
        variance = jnp.mean(targets.error**2 + unit.credible * targets.variance)
    assert 25 < float(variance) < 75


def test_a_domain_fixes_the_support():
    assert configure().domain is None
    assert isinstance(configure().support, LearnedSupport)
    config = configure(overrides={"domain": (-3, 3)})
    assert isinstance(config.support, FixedSupport)
    assert config.domain == Domain(-3.0, 3.0)
    assert configure(overrides={"support": "fixed"}).domain == Domain(-2.0, 2.0)


def test_a_learned_support_takes_no_domain():
    with pytest.raises(InvalidField, match=r"domain = \[-3.0, 3.0\].*'learned' takes none") as e:
        configure(overrides={"support": "learned", "domain": (-3, 3)})
    assert "\n" not in str(e.value)
    with pytest.raises(InvalidField, match=r"domain.*support 'fixed' needs one") as e:
        dataclasses.replace(configure(), support=FixedSupport())
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("agent", ["umdqn-kl", "dqn"])
def test_the_paper_has_the_domain_of_the_environment(agent):
    config = configure("CartPole-v1", agent, "paper")
    assert isinstance(config.support, FixedSupport)
    assert config.domain is not None
    learned = configure("CartPole-v1", agent, "paper", {"support": "learned"})
    assert learned.domain is None


def test_a_fixed_support_without_a_domain_estimates_it():
    env = "gymnasium.envs.classic_control:CartPoleEnv"
    with pytest.warns(Notice, match="are taken to lie in"):
        config = configure(env, overrides={"support": "fixed"})
    # Rewards of 1 for ever at a discount of 0.99, and a margin of a tenth.
    assert config.domain == Domain(-10.0, 110.0)


def test_names_of_supports():
    assert list(SUPPORTS) == ["learned", "fixed"]


def test_pictures_of_an_episode_show_where_laws_are(small_run):
    """The range of all scenes is chosen from the laws: it holds them, and is not far wider."""
    assert isinstance(small_run.config.support, LearnedSupport)
    states = ((2, 6), (3, 4), (0, 0))
    scenes = [Scene(i, None, np.asarray(s, np.float32)) for i, s in enumerate(states)]
    laws = _laws(small_run.agent, small_run.learned[0], scenes)
    actions = small_run.spec.num_actions
    assert laws.densities.shape == (3, actions, len(laws.z))
    assert laws.scores.shape == (3, actions)
    assert np.all(np.diff(laws.z) > 0)
    # All but 0.5% on either side.
    masses = np.trapezoid(laws.densities, laws.z, axis=-1)
    assert np.all((masses > 0.985) & (masses < 1.005))
    true = [small_run.law(state) for state in states]
    np.testing.assert_allclose(laws.scores, [law.mean for law in true], rtol=1e-4, atol=1e-5)
    quantiles = np.stack([law.quantile(np.asarray([0.005, 0.995])) for law in true])
    width = quantiles.max() - quantiles.min()
    assert laws.z[0] <= quantiles.min()
    assert laws.z[-1] >= quantiles.max()
    assert laws.z[-1] - laws.z[0] == pytest.approx(1.2 * width, rel=1e-3)


def transitions(reward, discount) -> Batch:
    random = np.random.default_rng(0)
    seen, following = (jnp.asarray(random.uniform(size=(8, 1)), jnp.float32) for _ in range(2))
    numbers = (jnp.broadcast_to(jnp.asarray(x, jnp.float32), (8,)) for x in (reward, discount))
    reward, discount = numbers
    transition = Transition(seen, jnp.arange(8) % 2, reward, discount, following)
    return Batch(transition, jnp.arange(8), jnp.ones(8))


ALTERNATING = np.array([1.0, -1.0] * 4)
HARD = {
    "no reward": transitions(0.0, 0.9),
    "equal rewards": transitions(1.0, 0.9),
    "all terminal": transitions(1.0, 0.0),
    "terminal by turns": transitions(ALTERNATING, np.maximum(ALTERNATING, 0.0) * 0.9),
    "far beyond": transitions(1e6 * ALTERNATING, 0.99),
    "one far beyond": transitions(np.where(np.arange(8) == 3, 1e4, 0.0), 0.9),
    "tiny": transitions(1e-6 * ALTERNATING, 0.99),
}


@pytest.mark.parametrize("name", quick(ALGORITHMS, ("umdqn-kl", "umdqn-w", "cdqn")))
def test_learning_stays_finite(name):
    """Targets beyond the support, points, and rewards of any size; every case follows the last."""
    representation, metric = parts(name)
    kind = ALGORITHMS[name].representation
    representation = dataclasses.replace(representation, **SMALL[kind])
    metric = dataclasses.replace(metric, points=8)
    agent = made(representation, metric, (8,), optax.adam(1e-3), support=LearnedSupport())

    @jax.jit
    def learn(state, batch, key):
        def step(state, key):
            return agent.learn(state, batch, key)

        state, outcome = jax.lax.scan(step, state, jax.random.split(key, 5))
        laws = agent.laws(state.learned, jnp.zeros(1))
        return state, outcome.losses, (laws.mean, laws.std)

    fresh = agent.init(jax.random.key(0))
    state = fresh
    for case, batch in HARD.items():
        # From the start, and after all that came before.
        for before in (fresh, state):
            after, losses, moments = learn(before, batch, jax.random.key(1))
            assert np.isfinite(losses).all(), case
            assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(after)), case
            assert np.isfinite(moments).all(), case
        state = after
