"""Finite MDPs: tables that are checked, environments that follow them, accuracy of runs."""

import json

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from scipy.stats import chi2, kstest

import umdqn
from umdqn.analysis import tabular
from umdqn.analysis.accuracy import distances
from umdqn.analysis.floor import Transitions, statistical_floor
from umdqn.analysis.reports import accuracy_report
from umdqn.cli.main import main
from umdqn.envs import inventory, random_walk
from umdqn.envs.catalogue import find, named
from umdqn.envs.finite import FiniteMdp
from umdqn.envs.grid_world import GridWorld, grid_world_mdp
from umdqn.envs.hosted import EnvironmentFault, GymnasiumEnvs, spec_of
from umdqn.envs.tabular import FiniteEnvironment, limited
from umdqn.envs.toy_text import ACTIONS
from umdqn.errors import Notice, UmdqnError
from umdqn.runs.build import build_agent
from umdqn.runs.configure import configure
from umdqn.runs.experience import experience

OURS = {"inventory": inventory.ID, "random-walk": random_walk.ID}
NAMES = [*ACTIONS, *OURS]
# Beyond this once in a million: seeds are fixed.
UNLIKELY = 1e-6


def tables(**changes) -> dict:
    """Two states, one action: 0 goes to 1 or stays, 1 ends."""
    fields = {
        "probability": np.array([[[0.25, 0.75]], [[1.0, 0.0]]]),
        "next_state": np.array([[[0, 1]], [[1, 0]]]),
        "reward": np.array([[[1.0, 2.0]], [[3.0, 0.0]]]),
        "terminated": np.array([[[False, False]], [[True, False]]]),
    }
    return fields | changes


def changed(name: str, value: float) -> dict:
    table = np.array(tables()[name], float)
    table[0, 0, 1] = value
    return tables(**{name: table})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (changed("probability", 0.5), "sum of probability[0, 0] = 0.75 is not allowed"),
        (changed("probability", -0.75), "probability[0, 0, 1] = -0.75 is not allowed"),
        (changed("probability", np.nan), "probability[0, 0, 1] = nan is not allowed"),
        (changed("next_state", 2), "next_state[0, 0, 1] = 2 is not allowed: a state from 0 to 1"),
        (changed("next_state", 0.5), "next_state = 'fractions' is not allowed"),
        (changed("reward", np.inf), "reward[0, 0, 1] = inf is not allowed"),
        (tables(reward=np.zeros((2, 1))), "reward = (2, 1) is not allowed"),
        (tables(probability=np.ones((2, 1))), "probability = (2, 1) is not allowed"),
        (tables(reward_std=-1.0), "reward_std[0, 0, 0] = -1.0 is not allowed"),
        (tables(start=np.array([0.5, 0.6])), "sum of start = 1.1 is not allowed"),
        (tables(start=np.array([1.0])), "start = (1,) is not allowed"),
        (tables(features=np.zeros((3, 2))), "features = (3, 2) is not allowed"),
        (tables(action_names=("A", "B")), "action_names"),
        (tables(discount=1.0), "discount = 1.0 is not allowed"),
        (tables(time_limit=0), "time_limit = 0 is not allowed"),
    ],
)
def test_tables_that_are_no_mdp_are_refused_in_one_line(fields, message):
    with pytest.raises(UmdqnError) as caught:
        FiniteMdp(**fields)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "table", [{}, {0: {}}, {1: {0: [(1.0, 0, 0.0, True)]}}, {0: {0: [(1.0, 0)]}}]
)
def test_what_is_no_table_is_refused_in_one_line(table):
    with pytest.raises(UmdqnError) as caught:
        FiniteMdp.from_table(table)
    assert "\n" not in str(caught.value)


def test_mdps_are_values():
    one, same = FiniteMdp(**tables()), FiniteMdp(**tables())
    assert one == same
    assert hash(one) == hash(same)
    assert one != FiniteMdp(**changed("reward", 2.5))
    assert one != FiniteMdp(**tables(discount=0.5))
    assert FiniteEnvironment(one) == FiniteEnvironment(same)
    assert FiniteEnvironment(one) != FiniteEnvironment(same, "another name")
    with pytest.raises(ValueError, match="read-only"):
        one.reward[0, 0, 0] = 5


def test_arrays_and_tables_say_the_same():
    """State 2 is terminal and state 3 is not reached."""
    moves = np.zeros((4, 1, 4))
    moves[0, 0, [0, 1]] = moves[1, 0, [0, 2]] = 0.5
    moves[2, 0, 2] = moves[3, 0, 0] = 1.0
    start = np.array([1.0, 0.0, 0.0, 0.0])
    rewards = np.array([[1.0], [2.0], [0.0], [4.0]])
    mdp = FiniteMdp.from_arrays(moves, rewards, terminal=[2], start=start)
    assert mdp.probability.shape == (4, 1, 2)
    table = {
        0: {0: [(0.5, 0, 1.0, False), (0.5, 1, 1.0, False)]},
        1: {0: [(0.5, 0, 2.0, False), (0.5, 2, 2.0, True)]},
        2: {0: [(1.0, 2, 0.0, True)]},
        3: {0: [(1.0, 0, 4.0, False)]},
    }
    other = FiniteMdp.from_table(table, start)
    happens = mdp.probability > 0
    for field in ("probability", "next_state", "reward", "terminated"):
        one, two = getattr(mdp, field), getattr(other, field)
        np.testing.assert_array_equal(one[happens], two[happens])
    assert mdp.visited.tolist() == [True, True, False, False]
    dense = np.broadcast_to(rewards[..., None], moves.shape)
    assert FiniteMdp.from_arrays(moves, dense, terminal=[2], start=start) == mdp
    # Worst: the episode ends at once, 1 + 0.99 * 2; best: back and forth for ever.
    low, high = mdp.return_bounds()
    assert low[1] == pytest.approx(2.0)
    assert high[0] == pytest.approx((1 + 0.99 * 2) / (1 - 0.99**2), rel=0.01)


def unlikely(counts, expected) -> bool:
    """Whether Pearson's chi-square rejects that counts come from expected ones."""
    counts, expected = np.asarray(counts, float), np.asarray(expected, float)
    if np.any(counts[expected == 0]):
        return True
    counts, expected = counts[expected > 0], expected[expected > 0]
    if len(counts) < 2:
        return False
    return chi2.sf(np.sum((counts - expected) ** 2 / expected), len(counts) - 1) < UNLIKELY


@pytest.mark.parametrize("name", NAMES)
def test_compiled_outcomes_have_the_frequencies_of_the_original(name):
    """Next states, rewards and ends of random pairs, counted in Gymnasium and in the compiled one.

    Both are compared with the table; Gymnasium's by its own steps, since a table could be read
    wrongly.
    """
    env, original = find(name).compiled, gymnasium.make(OURS.get(name, name)).unwrapped
    mdp, random, draws = env.mdp, np.random.default_rng(0), 400
    attribute = "s" if hasattr(original, "s") or name in ACTIONS else "_state"
    original.reset(seed=0)
    step = jax.jit(jax.vmap(env.step, in_axes=(None, None, 0)))
    for state in random.choice(np.flatnonzero(mdp.visited), 8):
        action = int(random.integers(mdp.num_actions))
        seen = []
        for _ in range(draws):
            setattr(original, attribute, int(state))
            following, reward, terminated, _, _ = original.step(action)
            seen.append((int(following), float(reward), bool(terminated)))
        keys = jax.random.split(jax.random.key(int(state)), draws)
        following, outcome = step(jnp.int32(state), jnp.int32(action), keys)
        ours = zip(*map(np.asarray, (following, outcome.reward, outcome.terminated)), strict=True)
        ours = [(int(s), float(r), bool(t)) for s, r, t in ours]
        cell = mdp.reward_std[state, action].max()
        for sample in (seen, ours):
            if cell > 0:
                noise = [
                    r - mdp.reward[state, action][mdp.next_state[state, action] == s][0]
                    for s, r, _ in sample
                ]
                assert kstest(noise, "norm", args=(0, cell)).pvalue > UNLIKELY
                sample[:] = [(s, 0.0, t) for s, _, t in sample]
            else:
                sample[:] = [(s, round(r, 4), t) for s, r, t in sample]
        expected: dict = {}
        for k, p in enumerate(mdp.probability[state, action]):
            row = (state, action, k)
            value = 0.0 if cell > 0 else round(float(mdp.reward[row]), 4)
            key = (int(mdp.next_state[row]), value, bool(mdp.terminated[row]))
            expected[key] = expected.get(key, 0.0) + draws * p
        for sample in (seen, ours):
            kinds = sorted({*expected, *sample})
            counts = [sample.count(kind) for kind in kinds]
            assert not unlikely(counts, [expected.get(kind, 0.0) for kind in kinds])


@pytest.mark.parametrize("name", NAMES)
def test_starts_and_time_limits_are_those_of_the_original(name):
    env, original = find(name).compiled, gymnasium.make(OURS.get(name, name))
    draws = 4_000
    starts = np.asarray(jax.vmap(env.reset)(jax.random.split(jax.random.key(3), draws)))
    counts = np.bincount(starts, minlength=env.mdp.num_states)
    assert not unlikely(counts, draws * env.mdp.start)
    theirs = np.bincount([original.reset(seed=i)[0] for i in range(500)], minlength=len(counts))
    assert not unlikely(theirs, 500 * env.mdp.start)
    limit = original.spec.max_episode_steps
    assert env.time_limit == (1_000 if limit is None else limit)
    assert find(name).spec.discount == 0.99
    hosted = find(name).hosted(1)
    assert hosted._envs[0].spec.max_episode_steps == env.time_limit
    assert hosted.reset(0).shape == (1, env.mdp.num_states)
    hosted.close()


@pytest.mark.parametrize("identifier", OURS.values())
def test_gymnasium_accepts_our_own(identifier):
    check_env(gymnasium.make(identifier).unwrapped, skip_render_check=True)


def test_the_inventory_by_hand():
    """Stock 3, order 2, demand 4: sells 4 for 12, pays 2 + 1, holds 1 for 0.1."""
    mdp = inventory.inventory_mdp()
    row = (3, 2, 4)
    assert mdp.next_state[row] == 1
    assert mdp.reward[row] == pytest.approx(12 - 3 - 0.1)
    # P(demand 1) / P(demand 0) of a Poisson law is its mean.
    assert mdp.probability[0, 0, 1] / mdp.probability[0, 0, 0] == pytest.approx(2.0)
    assert mdp.reward[10, 4, 0] == pytest.approx(-1.0)  # full: nothing is delivered or paid


def test_the_grid_world_is_a_finite_mdp_too():
    mdp, env = grid_world_mdp(), GridWorld()
    assert mdp.visited.tolist() == [True] * 47 + [False] * 2
    compiled = FiniteEnvironment(mdp)
    for state in (0, 20, 46):
        np.testing.assert_array_equal(
            compiled.observe(jnp.int32(state)), env.observe(jnp.asarray(mdp.features[state], int))
        )


def test_numbered_states_become_one_hot_vectors():
    made = gymnasium.make("FrozenLake-v1")
    spec = spec_of(made, "lake")
    assert (spec.observation.shape, spec.observation.dtype) == ((16,), "bool")
    envs = GymnasiumEnvs(lambda: gymnasium.make("FrozenLake-v1", is_slippery=False), spec)
    np.testing.assert_array_equal(envs.reset(0)[0], np.arange(16) == 0)
    step = envs.step(np.array([1]))  # down, a row of four further
    np.testing.assert_array_equal(step.observation[0], np.arange(16) == 4)
    for wrong in (16, -1, 0.5, None, True, np.zeros(16)):
        with pytest.raises(EnvironmentFault, match="a member of Discrete"):
            envs._observation(wrong)
    numbered = gymnasium.spaces.Discrete(3, start=5)
    made.observation_space = numbered
    shifted = GymnasiumEnvs(lambda: made, spec_of(made, "shifted"))
    np.testing.assert_array_equal(shifted._observation(np.int64(6)), [False, True, False])


def test_retired_names_lead_to_their_successors():
    with pytest.warns(Notice, match="Taxi-v3 is Taxi-v4 now"):
        assert find("Taxi-v3").spec.name == "Taxi-v4"


SMALL = {
    "steps": 400,
    "replay.warmup": 100,
    "replay.batch_size": 4,
    "update_every": 20,
    "evaluation.every": 400,
    "evaluation.episodes": 2,
    "torso.widths": 8,
    "representation.hidden": 8,
    "metric.points": 8,
}


@pytest.fixture
def small_mdp_agent():
    """An agent that has learned nothing, on FrozenLake."""
    env = find("FrozenLake-v1").compiled
    agent = build_agent(configure("FrozenLake-v1", "dqn"))
    return agent, agent.fresh(jax.random.key(0)), env.mdp


def trained(env, agent, path, **fields):
    # Fields of parts that an agent does not have are left out.
    kept = {k: v for k, v in SMALL.items() if agent != "dqn" or not k.startswith(("rep", "met"))}
    kept |= {k: v for k, v in SMALL.items() if k.startswith("replay")}
    return umdqn.train(env, agent, out=path, **(kept | fields))


@pytest.mark.parametrize(("loop", "agent"), [("compiled", "umdqn-c"), ("host", "dqn")])
def test_accuracy_of_a_run_on_a_table(loop, agent, tmp_path, capsys):
    run = trained("FrozenLake-v1", agent, tmp_path / "run", loop=loop)
    assert main(["accuracy", str(run.path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    keys = {"w1", "normalised_w1", "mean_error", "optimal_actions", "truth_error", "states"}
    assert keys <= set(report)
    assert report["states"] == 11  # 16 cells without four holes and the goal
    assert 0 <= report["optimal_actions"] <= 11
    # A distance between means is no larger than one between laws.
    assert report["mean_error"] <= report["w1"] + 1e-3
    assert 0 < report["truth_error"] < 1e-3
    # The laws of its own policy, from Python.
    mdp = find("FrozenLake-v1").compiled.mdp
    actions = run.predict(mdp.observations)[0]
    exact = umdqn.exact_laws(mdp, actions, run.config.discount)
    means = np.asarray(run.law(mdp.observations).mean)
    gap = np.abs(means - exact.mean)[mdp.visited].mean()
    assert report["mean_error"] == pytest.approx(gap, abs=1e-5)
    # The floor is that of the transitions that the run has seen: all of them, one after another.
    seen = experience(run)[0]
    assert len(seen.action) == run.config.steps
    following, before = seen.next_observation[:-1], seen.observation[1:]
    chained = (following == before).all(axis=1)
    begins = before[:, 0] == 1  # every episode begins in the first cell
    assert (chained | begins).all()
    assert not chained[seen.terminated[:-1]].any()
    assert seen.terminated.sum() > 5
    state, after = (rows.argmax(axis=1) for rows in (seen.observation, seen.next_observation))
    transitions = Transitions(state, seen.action, seen.reward, after, seen.terminated)
    floor = statistical_floor(mdp, transitions, actions, run.config.discount)
    assert report["floor"] == pytest.approx(floor["normalised_w1"])
    assert report["untried"] == floor["unseen"]


def test_accuracy_over_pairs_that_were_tried(small_mdp_agent):
    """All pairs but one: the mean over all is that over the others and the one left out."""
    agent, learned, mdp = small_mdp_agent
    states = np.flatnonzero(mdp.visited)
    pairs = [(s, a) for s in states for a in range(mdp.num_actions)]

    def scored(tried):
        state, action = np.array(tried).T
        none = np.zeros(len(tried))
        seen = Transitions(state, action, none, state, none.astype(bool))
        return tabular.finite_accuracy(agent, learned, mdp, 0.9, seen)

    whole, but_one = scored(pairs), scored(pairs[1:])
    assert whole["normalised_w1_tried"] == pytest.approx(whole["normalised_w1"])
    assert (whole["untried"], but_one["untried"]) == (0, 1)
    alone = scored(pairs[:1])["normalised_w1_tried"]
    total = alone + (len(pairs) - 1) * but_one["normalised_w1_tried"]
    assert total / len(pairs) == pytest.approx(whole["normalised_w1"], rel=1e-5)


def test_both_ways_to_measure_agree_on_the_grid_world(small_run):
    """CDFs of mixtures on a fine grid, against quantiles of laws by dynamic programming."""
    agent, learned, mdp = small_run.agent, small_run.learned[0], grid_world_mdp()
    one = distances(agent, learned, 0.5)
    states = np.flatnonzero(mdp.visited)
    seen = jnp.asarray(mdp.observations[states])
    found = jax.tree.map(np.asarray, tabular._views_program(agent)(learned, seen))
    truth = umdqn.exact_laws(mdp, discount=0.5)
    other = tabular._distances(agent, learned, seen, found, truth, states)
    for field, tolerance in {"w1": 2e-3, "cramer": 2e-3, "ks": 5e-3, "mean_error": 1e-4}.items():
        gap = np.abs(getattr(one, field) - getattr(other, field))
        assert gap.max() < tolerance + truth.error_bound, field


def test_a_users_mdp_trains_compiled_and_has_exact_laws(tmp_path):
    mdp = FiniteMdp(**tables(terminated=False, features=np.array([[0.0], [1.0]]), time_limit=20))
    run = trained(mdp, "dqn", tmp_path / "run")
    assert find(named(mdp)).compiled.mdp is mdp
    report = accuracy_report(run)
    assert report["states"] == 2
    assert report["optimal_actions"] == 2  # there is one action
    env = limited(mdp)
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(20)] == [False] * 19 + [True]


def test_points_have_no_normalised_distance_and_others_no_exact_laws(tmp_path, capsys):
    run = trained("CliffWalking-v1", "dqn", tmp_path / "run")
    report = accuracy_report(run)
    assert report["normalised_w1"] is None
    assert main(["accuracy", str(run.path)]) == 0
    assert " - " in capsys.readouterr().out
    other = trained("CartPole-v1", "dqn", tmp_path / "other")
    assert main(["accuracy", str(other.path)]) == 1
    error = capsys.readouterr().err
    for word in ("CartPole-v1", "grid-world", "Taxi-v4", "inventory", "umdqn calibrate"):
        assert word in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("preset", ["paper", "tuned"])
def test_presets_know_finite_mdps(preset):
    config = umdqn.configure("inventory", "umdqn-c", preset)
    assert (config.steps, config.discount) == (200_000, 0.99)
