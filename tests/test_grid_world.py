"""The grid world: rules, Gymnasium's checker, exact laws against Monte Carlo."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from monte_carlo import monte_carlo_returns
from umdqn.analysis.exact import exact_laws, optimal_actions, optimal_policy, optimal_values
from umdqn.envs import grid_world as grid
from umdqn.envs.grid_world import GridWorld
from umdqn.envs.gymnasium_grid_world import ID
from umdqn.errors import UmdqnError

RIGHT, DOWN, LEFT, UP = range(4)


def state_index(x: int, y: int) -> int:
    return grid.STATES.index((x, y))


def test_compiled_steps_follow_the_rules_in_every_state():
    """All 47 x 4 pairs: arrivals, their frequencies, terminations and rewards."""
    env, draws = GridWorld(), 400
    states = jnp.asarray(np.repeat(np.array(grid.STATES), 4 * draws, axis=0))
    actions = jnp.asarray(np.tile(np.repeat(np.arange(4), draws), len(grid.STATES)))
    keys = jax.random.split(jax.random.key(0), len(actions))
    reached, outcome = jax.jit(jax.vmap(env.step))(states, actions, keys)
    reached = np.asarray(reached).reshape(len(grid.STATES), 4, draws, 2)
    rewards = np.asarray(outcome.reward).reshape(reached.shape[:-1])
    terminated = np.asarray(outcome.terminated).reshape(reached.shape[:-1])
    for i, state in enumerate(grid.STATES):
        for action in range(4):
            cells = [(int(x), int(y)) for x, y in reached[i, action]]
            expected = grid.arrivals(state, action)
            assert set(cells) <= set(expected)
            for cell, probability in expected.items():
                # Five standard errors of a frequency over 400 draws.
                error = 5 * np.sqrt(probability * (1 - probability) / draws) + 1e-9
                assert abs(cells.count(cell) / draws - probability) <= error
            ends = [cell in (grid.TRAP, grid.TARGET) for cell in cells]
            np.testing.assert_array_equal(terminated[i, action], ends)
            noise = rewards[i, action] - [grid.expected_reward(cell) for cell in cells]
            assert abs(noise.mean()) < 5 * grid.REWARD_STD / np.sqrt(draws)


def test_moves_by_hand():
    assert grid.move((2, 6), RIGHT, 1) == grid.TARGET
    assert grid.move((2, 6), RIGHT, 2) == (4, 6)
    assert grid.move((3, 5), UP, 2) == grid.TARGET  # the border holds the agent at the target
    assert grid.move((3, 4), DOWN, 2) == (3, 2)  # a jump passes over the trap
    assert grid.move((0, 0), LEFT, 2) == (0, 0)


def test_episodes_start_everywhere_but_at_the_trap_and_the_target():
    starts = jax.vmap(GridWorld().reset)(jax.random.split(jax.random.key(1), 4_700))
    seen = {tuple(position) for position in np.asarray(starts).tolist()}
    assert seen == set(grid.STATES)


def test_gymnasium_accepts_the_environment():
    check_env(gymnasium.make(ID, render_mode="rgb_array").unwrapped)


def test_the_gymnasium_environment_truncates_after_20_steps_and_renders():
    env = gymnasium.make(ID, render_mode="rgb_array")
    env.reset(seed=3)
    env.unwrapped._position = (0, 0)
    for step in range(1, 21):
        _, _, terminated, truncated, _ = env.step(LEFT)
        assert not terminated
        assert truncated == (step == 20)
    picture = env.render()
    assert picture.shape == (224, 224, 3)
    np.testing.assert_array_equal(picture[5 * 32 + 0 + 3, 3], (240, 240, 240))
    # The agent's colour at the centre of the bottom left cell.
    np.testing.assert_array_equal(picture[6 * 32 + 16, 16], (0, 114, 178))
    text = gymnasium.make(ID, render_mode="ansi")
    text.reset(seed=0)
    assert text.render().count("A") == 1


def test_both_environments_have_one_transition_law():
    env = gymnasium.make(ID).unwrapped
    env.reset(seed=0)
    reached = []
    for _ in range(2_000):
        env._position = (2, 6)
        observation, _, terminated, _, _ = env.step(RIGHT)
        reached.append(tuple(observation.astype(int)))
        assert terminated == (reached[-1] == grid.TARGET)
    share = reached.count(grid.TARGET) / len(reached)
    assert abs(share - 0.5) < 5 * 0.5 / np.sqrt(len(reached))


def test_optimal_values_by_hand():
    """At (3, 5) UP reaches the target at once: 1. At (2, 6), by symmetry with (4, 6), RIGHT is
    worth v = 1/2 + 1/2 * 1/2 * v, hence 2/3.
    """
    values = optimal_values()
    assert values[state_index(3, 5), UP] == pytest.approx(1.0)
    assert values[state_index(2, 6), RIGHT] == pytest.approx(2 / 3)
    assert optimal_actions()[state_index(2, 6)].tolist() == [True, False, False, False]
    assert optimal_actions()[state_index(3, 1)].tolist() == [True, False, True, False]


def test_exact_means_are_the_optimal_values():
    laws = exact_laws(optimal_policy())
    means = np.array([[float(law.mean) for law in row] for row in laws])
    np.testing.assert_allclose(means, optimal_values(), atol=1e-6)


def test_exact_law_at_2_6_right_by_hand():
    """Half ends at once; else a jump to (4, 6), from where LEFT is the same again."""
    law = exact_laws(optimal_policy())[state_index(2, 6)][RIGHT]
    np.testing.assert_allclose(law.weights[:4], [0.5, 0.25, 0.125, 0.0625])
    np.testing.assert_allclose(law.means[:4], [1.0, 0.5, 0.25, 0.125])
    np.testing.assert_allclose(law.stds[:3] ** 2, [0.01, 0.01 * 1.25, 0.01 * 1.3125], rtol=1e-5)


def test_ties_among_optimal_actions_have_one_law():
    """Otherwise the truth would depend on how ties are broken."""
    laws, best = exact_laws(optimal_policy()), optimal_actions()
    z = jnp.linspace(-2, 2, 201)
    for state in range(len(grid.STATES)):
        cdfs = [np.asarray(laws[state][a].cdf(z)) for a in np.flatnonzero(best[state])]
        for cdf in cdfs[1:]:
            np.testing.assert_allclose(cdf, cdfs[0], atol=1e-6)


@pytest.mark.parametrize(
    ("policy_name", "time_limit", "state", "action"),
    [("optimal", None, (2, 6), RIGHT), ("random", 20, (3, 2), UP), ("random", 3, (0, 1), LEFT)],
)
def test_monte_carlo_agrees_with_the_exact_law(policy_name, time_limit, state, action):
    policies = {"optimal": optimal_policy(), "random": np.full((len(grid.STATES), 4), 0.25)}
    policy = policies[policy_name]
    law = exact_laws(policy, time_limit=time_limit)[grid.STATES.index(state)][action]
    table = np.full((grid.SIZE, grid.SIZE, 4), 0.25)
    for position, probabilities in zip(grid.STATES, policy, strict=True):
        table[position] = probabilities
    logits = jnp.log(jnp.asarray(table))

    def act(position, key):
        return jax.random.categorical(key, logits[position[0], position[1]])

    episodes = 20_000
    returns = monte_carlo_returns(
        GridWorld(),
        act,
        jnp.asarray(state),
        action,
        0.5,
        episodes,
        time_limit or 60,
        jax.random.key(2),
    )
    z = np.sort(np.asarray(returns))
    empirical = (np.arange(episodes) + 0.5) / episodes
    # Dvoretzky, Kiefer, Wolfowitz: beyond 1.95 / sqrt(n) once in a thousand; the key is fixed.
    gap = np.abs(np.asarray(law.cdf(jnp.asarray(z))) - empirical).max()
    assert gap < 1.95 / np.sqrt(episodes)
    assert abs(returns.mean() - law.mean) < 4 * law.std / np.sqrt(episodes)


def test_a_time_limit_leaves_noise_only():
    # One step from (0, 0) LEFT cannot end: N(0, 0.01).
    law = exact_laws(optimal_policy(), time_limit=1)[state_index(0, 0)][LEFT]
    assert float(law.mean) == 0.0
    assert float(law.std) == pytest.approx(0.1)


@pytest.mark.parametrize("text", ["7,6", "-1,2", "3,3", "3,6", "2;6", "2", "a,b", ""])
def test_states_outside_the_grid_are_refused(text):
    with pytest.raises(UmdqnError, match="not a state of grid-world"):
        grid.parse_state(text)
