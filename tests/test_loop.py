"""The compiled loop: what is stored, bootstrapped and learned."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from umdqn.envs import grid_world as grid
from umdqn.envs.environment import Environment, Outcome
from umdqn.exploration.epsilon_greedy import EpsilonGreedy
from umdqn.exploration.exploration import Moment
from umdqn.loops import compiled_training
from umdqn.loops.compiled_training import CompiledTraining
from umdqn.networks.torsos import Mlp
from umdqn.runs.build import build_loop, build_training
from umdqn.runs.configure import configure
from umdqn.specs import Domain, EnvSpec, Observation
from umdqn.targets.periodic import Periodic

FIRST = jnp.int32(0)


def test_epsilon_follows_the_paper():
    # end + (start - end) exp(-step / decay), at 0 and one decay.
    schedule = EpsilonGreedy(start=1.0, end=0.01, decay=10_000.0)
    assert float(schedule.epsilon(jnp.int32(0))) == pytest.approx(1.0)
    assert float(schedule.epsilon(jnp.int32(10_000))) == pytest.approx(0.01 + 0.99 / np.e)


def test_exploration_falls_with_the_steps_of_all_copies():
    """Four copies, 10,000 steps: 2,500 choices each, and epsilon as for one copy."""
    moment = Moment.on_host(10_000, copies=4)
    assert moment == (10_000, 2_500)
    key, scores = jax.random.key(0), jnp.array([0.0, 0.0, 0.0, 1.0])
    slow = EpsilonGreedy(start=1.0, end=0.0, decay=4_000.0)
    moments = Moment(jnp.full(400, 10_000), jnp.arange(400))
    chosen = jax.vmap(lambda moment: slow.act(key, moment, 4, lambda: scores))(moments)
    # Random with probability e^-2.5 = 0.082, of which 3 in 4 differ: 24.6 +- 4.8 of 400.
    assert 24.6 - 4 * 4.8 < int((chosen != 3).sum()) < 24.6 + 4 * 4.8


@functools.cache
def trained(steps: int, **overrides):
    defaults = {"steps": steps, "replay.capacity": 2_000, "replay.warmup": steps}
    config = configure(overrides=defaults | overrides)
    loop = build_loop(config)
    return loop, *jax.jit(loop.chunk)(begin(loop, 3), FIRST, jnp.int32(steps))


def begin(loop, seed):
    return jax.jit(loop.init)(jax.random.key(seed))


def stored(loop, state, steps):
    rows = loop.memory.storage.transitions(state.memory, jnp.arange(steps))
    return jax.tree.map(np.asarray, rows)


def cell(observation: np.ndarray) -> tuple[int, int]:
    return int(observation[0]), int(observation[1])


def ended(rows) -> int:
    return sum(cell(seen) in (grid.TRAP, grid.TARGET) for seen in rows.next_observation)


def test_stored_transitions_are_steps_of_one_episode():
    """Every transition obeys the rules; none joins two episodes; only termination ends a return."""
    loop, state, progress = trained(1_500)
    rows = stored(loop, state, 1_500)
    for step in range(1_500):
        before, after = cell(rows.observation[step]), cell(rows.next_observation[step])
        assert after in grid.arrivals(before, int(rows.action[step]))
        terminal = after in (grid.TRAP, grid.TARGET)
        assert rows.discount[step] == (0.0 if terminal else 0.5)
        if step and cell(rows.next_observation[step - 1]) != before:
            # A new episode: the last one ended, by termination or by its 20 steps.
            assert before in grid.STATES
    assert 0 < ended(rows) <= int(progress.episodes)
    assert int(progress.updates) == 0


@pytest.mark.parametrize(("kind", "copies"), [("compiled", 1), ("host", 1), ("host", 2)])
def test_random_choices_last(kind, copies):
    """With epsilon 1 the action changes only where a block of choices begins."""
    fields = {"loop": kind, "exploration.repeat": 5, "replay.warmup": 60 * copies}
    fields |= {"exploration.end": 1.0, "replay.capacity": 100 * copies, "num_envs": copies}
    training = build_training(configure("CartPole-v1", "dqn", overrides=fields))
    training.advance(60 * copies)
    rows = training.snapshots()[0].rows([0] * copies, [60] * copies)
    training.close()
    actions = np.asarray(rows["0/numbers"])[:, 0].reshape(12, 5)
    assert (actions == actions[:, :1]).all()
    # Twelve blocks that are all alike would be a chance of 1 in 2,048.
    assert 0 < actions[:, 0].sum() < 12


def test_truncation_can_be_treated_as_termination():
    kept = stored(*trained(1_500)[:2], 1_500)
    cut = stored(*trained(1_500, truncation_terminates=True)[:2], 1_500)
    assert (cut.discount == 0).sum() > ended(cut)
    assert (kept.discount == 0).sum() == ended(kept)


def test_chunks_of_any_length_give_the_same_bits():
    config = configure(overrides={"steps": 260, "replay.warmup": 100, "replay.capacity": 300})
    loop = build_loop(config)
    chunk = jax.jit(loop.chunk)
    whole, _ = chunk(begin(loop, 0), FIRST, jnp.int32(260))
    state, first = begin(loop, 0), 0
    for steps in (37, 100, 3, 120):
        state, _ = chunk(state, jnp.int32(first), jnp.int32(steps))
        first += steps
    for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(state), strict=True):
        if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
            one, other = jax.random.key_data(one), jax.random.key_data(other)
        np.testing.assert_array_equal(one, other)


def test_the_target_network_is_copied_at_its_interval():
    fields = {"steps": 200, "replay.warmup": 50, "target.every": 60, "replay.capacity": 99}
    loop = build_loop(configure(overrides=fields | {"target": "periodic", "update_every": 1}))
    chunk = jax.jit(loop.chunk)

    def networks_after(steps):
        state, _ = chunk(begin(loop, 1), FIRST, jnp.int32(steps))
        return jax.tree.leaves(state.agent.params)[0], jax.tree.leaves(state.agent.target_params)[0]

    params, target = networks_after(109)
    assert not np.array_equal(params, target)
    params, target = networks_after(110)
    np.testing.assert_array_equal(params, target)


def test_seeds_in_one_program_learn_like_seeds_of_their_own():
    """The way of accelerators, here on a CPU: other sums round otherwise, and no more than that."""
    fields = {"steps": 300, "replay.warmup": 100, "replay.capacity": 300, "torso.widths": (16,)}
    fields |= {"representation.hidden": (8,), "metric.points": 20}
    loop = build_loop(configure(overrides=fields))
    states = {}
    for batched in (False, True):
        training = CompiledTraining(loop, [3, 8], batched=batched)
        progress = training.advance(120) and training.advance(180)
        assert [int(one.updates) for one in progress] == [180, 180]
        states[batched] = training.agents()
        snapshots = [snapshot.rows([0], [300]) for snapshot in training.snapshots()]
        states[batched] += [rows["0/numbers"][:150] for rows in snapshots]
        training.close()
    for one, other in zip(*map(jax.tree.leaves, states.values()), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)


def test_seeds_in_one_program_do_not_copy_their_memories():
    """A chunk takes the state over and writes memories in place, however large they are."""
    fields = {"replay.capacity": 200_000, "torso.widths": (8,), "representation.hidden": (8,)}
    loop = build_loop(configure(overrides=fields | {"metric.points": 8, "update_every": 2}))
    states = jax.eval_shape(jax.vmap(loop.init), jax.random.split(jax.random.key(0), 2))
    chunk = compiled_training._programs(loop, batched=True).chunk
    program = chunk.lower(states, np.int32(0), np.int32(1)).compile().memory_analysis()
    memories = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(states.memory))
    # Working memory is that of a batch of 32: a copy of one ring would be half of `memories`.
    assert memories > 10_000_000
    assert program.alias_size_in_bytes >= memories
    assert program.temp_size_in_bytes < memories / 10


class TwoStates(Environment):
    """Reward 1 at every step of a single state that never terminates, cut after 2 steps."""

    def __init__(self, terminates: bool):
        self.terminates = terminates
        self.spec = EnvSpec(
            name="two-states",
            family="grid-world",
            num_actions=1,
            observation=Observation((1,), "float32", (0.0,), (1.0,)),
            discount=0.5,
            domain=Domain(-1.0, 3.0),
            time_limit=2,
            action_names=("STAY",),
        )

    def reset(self, key):
        return jnp.int32(0)

    def step(self, state, action, key):
        count = state + 1
        return count, Outcome(jnp.float32(1.0), (count >= 2) & self.terminates)

    def observe(self, state):
        # The agent does not see the time.
        return jnp.zeros(1)


@pytest.mark.parametrize(("terminates", "expected"), [(False, 2.0), (True, 4 / 3)])
def test_truncation_bootstraps_and_termination_does_not(terminates, expected):
    """Truncated: Z = 1 + Z / 2, so 2. Ended every other step, unseen: v = 1 + v / 4, so 4/3."""
    env = TwoStates(terminates)
    fields = {"steps": 1_500, "replay.warmup": 50, "metric.root": False}
    fields |= {"optimiser.learning_rate": 3e-3, "optimiser.schedule": "cosine"}
    loop = build_loop(configure(overrides=fields))
    agent = dataclasses.replace(
        loop.agent, spec=env.spec, domain=env.spec.domain, torso=Mlp((16, 16)), target=Periodic(50)
    )
    loop = dataclasses.replace(loop, agent=agent, env=env, discount=0.5)
    state, _ = jax.jit(loop.chunk)(begin(loop, 0), FIRST, jnp.int32(1_500))
    mean = jax.jit(agent.laws)(state.agent.learned, jnp.zeros(1))[0].mean
    # The step that stands for a Dirac is 0.04 wide; batches of 32 give the shares of both cases.
    assert float(mean) == pytest.approx(expected, abs=0.06)
