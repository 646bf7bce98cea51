"""Exact laws of finite MDPs against closed forms, linear algebra, mixtures and simulation."""

import numpy as np
import pytest
from scipy.stats import norm

import umdqn
from umdqn.analysis import exact
from umdqn.analysis.dynamic_programming import exact_laws
from umdqn.analysis.floor import Transitions, empirical_mdp, statistical_floor
from umdqn.analysis.planning import moments, optimal_actions, optimal_policy
from umdqn.analysis.tabulated import distance
from umdqn.envs import grid_world as grid
from umdqn.envs.catalogue import find
from umdqn.envs.finite import FiniteMdp
from umdqn.envs.inventory import inventory_mdp
from umdqn.envs.random_walk import random_walk_mdp
from umdqn.errors import UmdqnError


def single(reward=(1.0,), probability=(1.0,), std=0.0, terminated=False, **fields) -> FiniteMdp:
    """One state, one action, and the given outcomes, all of which lead back."""
    shape = (1, 1, len(reward))
    return FiniteMdp(
        np.reshape(probability, shape),
        np.zeros(shape, int),
        np.reshape(reward, shape),
        std,
        np.broadcast_to(terminated, shape),
        **fields,
    )


def w1_to(laws, pair, quantile) -> float:
    """W1 from a law that is given by its quantile function, by 20,000 fractions."""
    tau = (np.arange(20_000) + 0.5) / 20_000
    return float(np.abs(laws.quantile(tau)[pair] - quantile(tau)).mean())


def w1_to_atoms(laws, pair, atoms, masses) -> float:
    """W1 from a law on atoms, exactly: the integral of the difference of the CDFs."""
    order = np.argsort(atoms)
    atoms, sums = np.asarray(atoms)[order], np.cumsum(np.asarray(masses)[order])
    z = np.union1d(atoms, laws.z[pair])
    other = np.concatenate([[0.0], sums])[np.searchsorted(atoms, z[:-1], side="right")]
    own = np.concatenate([[0.0], laws.table[pair]])
    own = own[np.searchsorted(laws.z[pair], z[:-1], side="right")]
    return float(np.sum(np.abs(own - other) * np.diff(z)))


@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99, 0.999])
def test_gaussian_rewards_have_a_gaussian_return(discount):
    """Sum of discount^t N(2, 0.5^2): N(2 / (1 - discount), 0.25 / (1 - discount^2))."""
    laws = exact_laws(single([2.0], std=0.5), discount=discount, points=2_000)
    mean, std = 2 / (1 - discount), 0.5 / np.sqrt(1 - discount**2)
    np.testing.assert_allclose([laws.mean[0, 0], laws.std[0, 0]], [mean, std], rtol=1e-9)
    measured = w1_to(laws, (0, 0), lambda tau: norm.ppf(tau, mean, std))
    assert measured <= laws.error_bound < 0.2 * std
    assert laws.cvar(0.1)[0, 0] == pytest.approx(
        mean - std * norm.pdf(norm.ppf(0.1)) / 0.1, abs=10 * laws.error_bound
    )


def test_a_geometric_number_of_rewards():
    """Reward 1, the episode ends with probability 1/4: (1 - discount^T) / (1 - discount)."""
    discount, ends = 0.95, 0.25
    mdp = single([1.0, 1.0], [ends, 1 - ends], terminated=[True, False])
    laws = exact_laws(mdp, discount=discount)
    length = np.arange(1, 400)
    atoms, masses = (1 - discount**length) / (1 - discount), ends * (1 - ends) ** (length - 1)
    assert w1_to_atoms(laws, (0, 0), atoms, masses) <= laws.error_bound < 1e-3
    assert laws.mean[0, 0] == pytest.approx(np.sum(atoms * masses))
    assert laws.std[0, 0] == pytest.approx(
        np.sqrt(np.sum(masses * atoms**2) - laws.mean[0, 0] ** 2)
    )


def test_fair_coins_at_a_half_are_uniform():
    """Reward 0 or 1 by a coin, discount 1/2: binary digits, uniform on [0, 2]."""
    laws = exact_laws(single([0.0, 1.0], [0.5, 0.5]), discount=0.5)
    assert w1_to(laws, (0, 0), lambda tau: 2 * tau) <= laws.error_bound < 1e-3
    assert laws.std[0, 0] == pytest.approx(2 / np.sqrt(12))
    np.testing.assert_allclose(
        laws.cdf(np.array([0.5, 1.0, 3.0, -1.0]))[0, 0], [0.25, 0.5, 1, 0], atol=1e-3
    )


def test_a_chain_of_two_states_by_hand():
    """0 -> 1 earns 1; 1 ends with 3 or goes back to 0 with 0, each with probability 1/2.

    From state 1, n returns to 0 have weight 2^-(n+1) and
    give discount^(2n) 3 + sum_{k=1}^n discount^(2k-1).
    """
    table = {0: {0: [(1.0, 1, 1.0, False)]}, 1: {0: [(0.5, 1, 3.0, True), (0.5, 0, 0.0, False)]}}
    discount, rounds = 0.9, np.arange(60)
    laws = exact_laws(FiniteMdp.from_table(table), discount=discount)
    earned = np.array([np.sum(discount ** (2 * np.arange(1, n + 1) - 1)) for n in rounds])
    atoms, masses = discount ** (2 * rounds) * 3 + earned, 0.5 ** (rounds + 1)
    assert w1_to_atoms(laws, (1, 0), atoms, masses) <= laws.error[1, 0] < 1e-3
    assert w1_to_atoms(laws, (0, 0), 1 + discount * atoms, masses) <= laws.error[0, 0] < 1e-3


def test_deterministic_laws_are_points():
    laws = exact_laws(single([1.0]), discount=0.999)
    assert laws.std[0, 0] == 0
    assert laws.quantile(np.array([0.01, 0.5, 0.99]))[0, 0] == pytest.approx(1_000)
    assert laws.error_bound < 1e-4
    assert exact_laws(single([1.0]), discount=0.0).mean[0, 0] == 1


@pytest.mark.parametrize("discount", [0.5, 0.9])
def test_the_grid_worlds_mixtures_agree_within_the_bound(discount):
    """The referee: Gaussian mixtures by forward propagation, at every fifth state."""
    mdp = grid.grid_world_mdp()
    laws = exact_laws(mdp, discount=discount, points=8_000)
    policy = exact.optimal_policy(discount)
    np.testing.assert_array_equal(
        optimal_actions(mdp, discount)[:47], exact.optimal_actions(discount)
    )
    np.testing.assert_allclose(laws.mean[:47], exact.optimal_values(discount), atol=1e-9)
    referee = exact.exact_laws(policy, discount)
    spacing = laws.offsets[1] - laws.offsets[0]
    for state in range(0, 47, 5):
        for action, mixture in enumerate(referee[state]):
            z = laws.z[state, action]
            parts = (
                np.asarray(part, np.float64)
                for part in (mixture.weights, mixture.means, mixture.stds)
            )
            weights, means, stds = parts
            cdf = norm.cdf((z[:, None] - means) / stds) @ weights
            w1 = spacing * np.abs(cdf - laws.table[state, action]).sum()
            # Weights of mixtures are in single precision; summing on the grid adds half a cell.
            assert w1 <= laws.error[state, action] + spacing / 2 + 1e-5
            assert laws.error[state, action] < 2e-3


@pytest.mark.parametrize("name", ["FrozenLake8x8-v1", "CliffWalkingSlippery-v1", "inventory"])
def test_the_tables_have_the_moments_of_linear_algebra(name):
    """Means and variances of the CDFs, against solutions of linear systems, at 0.99."""
    mdp = find(name).compiled.mdp
    laws = exact_laws(mdp, points=2_000)
    spacing = laws.offsets[1] - laws.offsets[0]
    masses = np.diff(laws.table, axis=-1, prepend=0.0)
    mean, square = masses @ laws.offsets, masses @ laws.offsets**2
    assert np.abs(mean).max() <= laws.error_bound
    # Rounding adds to the variance, by at most the square of its bound.
    excess = square - mean**2 - laws.std**2
    assert excess.min() > -2 * laws.error_bound * laws.std.max() * 0.1
    assert excess.max() <= laws.error_bound**2 + 0.1 * laws.error_bound * laws.std.max()
    assert spacing / 2 / np.sqrt(1 - 0.99**2) >= laws.error_bound * 0.5


def test_moments_satisfy_bellmans_equation_by_simulation():
    """100,000 episodes of the random walk under a random policy at discount 0.9."""
    mdp, random = random_walk_mdp(), np.random.default_rng(0)
    policy = np.full((11, 2), 0.5)
    found, episodes, discount = moments(mdp, policy, 0.9), 100_000, 0.9
    state, action = np.full(episodes, 4), np.ones(episodes, int)
    total = np.zeros(episodes)
    for step in range(150):
        outcome = (random.random(episodes) > mdp.probability[state, action, 0]).astype(int)
        noise = 0.5 * random.standard_normal(episodes)
        total += discount**step * (mdp.reward[state, action, outcome] + noise)
        state = mdp.next_state[state, action, outcome]
        action = random.integers(0, 2, episodes)
    assert total.mean() == pytest.approx(found.mean[4, 1], abs=4 * found.std[4, 1] / episodes**0.5)
    assert total.std() == pytest.approx(found.std[4, 1], rel=0.02)
    law = exact_laws(mdp, policy, discount)
    tau = (np.arange(episodes) + 0.5) / episodes
    gap = np.abs(np.sort(total) - law.quantile(tau)[4, 1]).mean()
    # W1 of 100,000 draws from their law is about 0.5 std / sqrt(n).
    assert gap < law.error_bound + 3 * law.std[4, 1] / episodes**0.5


def test_ties_are_optimal_and_arrays_are_mdps():
    transitions = np.zeros((2, 3, 2))
    transitions[:, :, 1] = 1.0
    rewards = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    laws = umdqn.exact_laws((transitions, rewards), discount=0.9)
    assert laws.mean[0].tolist() == [1.0, 1.0, 0.0]
    mdp = FiniteMdp.from_arrays(transitions, rewards)
    assert optimal_actions(mdp, 0.9)[0].tolist() == [True, True, False]
    assert optimal_policy(mdp, 0.9)[0].tolist() == [1.0, 0.0, 0.0]
    other = umdqn.exact_laws(mdp, np.array([2, 0]), 0.9)
    np.testing.assert_allclose(distance(laws, other), np.zeros((2, 3)), atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policy": [0, 1]}, "policy"),
        ({"policy": [[0.5, 0.4]]}, "rows must sum to 1"),
        ({"policy": [[1.5, -0.5]]}, "policy"),
        ({"policy": [2]}, "actions from 0 to 1"),
        ({"policy": "best"}, "policy must be an array"),
        ({"discount": 1.0}, "from 0 to below 1"),
        ({"discount": float("nan")}, "from 0 to below 1"),
        ({"points": 3}, "points"),
    ],
)
def test_mistakes_are_one_line(arguments, message):
    mdp = FiniteMdp(np.ones((1, 2, 1)), np.zeros((1, 2, 1)), np.ones((1, 2, 1)))
    with pytest.raises(UmdqnError) as caught:
        exact_laws(mdp, **arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def drawn(mdp: FiniteMdp, count: int, seed: int) -> Transitions:
    """Transitions of uniform states and actions."""
    random = np.random.default_rng(seed)
    state = random.integers(0, mdp.num_states, count)
    action = random.integers(0, mdp.num_actions, count)
    sums = np.cumsum(mdp.probability[state, action], axis=1)
    cell = (state, action, (random.random(count)[:, None] * sums[:, -1:] >= sums).sum(axis=1))
    reward = mdp.reward[cell] + mdp.reward_std[cell] * random.standard_normal(count)
    return Transitions(state, action, reward, mdp.next_state[cell], mdp.terminated[cell])


@pytest.mark.parametrize("make", [inventory_mdp, random_walk_mdp])
def test_the_floor_falls_with_the_root_of_the_data(make):
    mdp = make()
    policy = optimal_policy(mdp, 0.9)
    few, many = (
        np.mean(
            [
                statistical_floor(mdp, drawn(mdp, count, seed), policy, 0.9, 1_500)["normalised_w1"]
                for seed in range(3)
            ]
        )
        for count in (4_000, 64_000)
    )
    # Sixteen times the data: a quarter of the distance, within the spread of three draws.
    assert 0.1 < many / few < 0.5


def test_the_empirical_mdp_has_the_frequencies():
    like = FiniteMdp(np.ones((2, 1, 1)), np.ones((2, 1, 1)), np.zeros((2, 1, 1)))
    seen = Transitions([0, 0, 0, 0], [0] * 4, [1.0, 1.0, 1.0, 2.0], [1, 1, 0, 1], [False] * 4)
    mdp, visits = empirical_mdp(seen, like)
    assert visits.tolist() == [[4], [0]]
    # To state 0 with reward 1: 1/4. To state 1 with rewards 1, 1, 2 of mean 4/3: 3/4.
    np.testing.assert_allclose(mdp.probability[0, 0], [0.25, 0.75])
    np.testing.assert_allclose(mdp.reward[0, 0], [1.0, 4 / 3])
    assert mdp.terminated[1, 0, 0]
    floor = statistical_floor(like, seen, discount=0.5, points=100)
    assert (floor["unseen"], floor["transitions"]) == (1, 4)
    with pytest.raises(UmdqnError, match="whole numbers from 0 to 1"):
        empirical_mdp(seen._replace(state=[0, 0, 0, 2]), like)
