"""Replay, schedules, the compiled loop: what is stored, bootstrapped and learned."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from umdqn.types import Domain, EnvSpec, Observation, Transition

from umdqn.agents import EpsilonGreedy, Replay
from umdqn.envs import Environment, Outcome
from umdqn.envs import grid_world as grid
from umdqn.loops import CompiledLoop
from umdqn.runs import configure


def test_epsilon_follows_the_paper():
    # end + (start - end) exp(-step / decay), at 0 and one decay.
    schedule = EpsilonGreedy(start=1.0, end=0.01, decay=10_000.0)
    assert float(schedule.epsilon(jnp.int32(0))) == pytest.approx(1.0)
    assert float(schedule.epsilon(jnp.int32(10_000))) == pytest.approx(0.01 + 0.99 / np.e)


def transition(reward: float) -> Transition:
    observation = jnp.full(2, reward)
    return Transition(observation, jnp.int32(0), jnp.float32(reward), jnp.float32(0), observation)


def test_replay_forgets_the_oldest_and_samples_only_what_is_stored():
    replay = Replay.empty(jnp.zeros(2), 4)
    for reward in (1.0, 2.0):
        replay = replay.add(transition(reward))
    drawn = set(np.asarray(replay.sample(jax.random.key(0), 200).reward).tolist())
    assert drawn == {1.0, 2.0}
    for reward in (3.0, 4.0, 5.0, 6.0):
        replay = replay.add(transition(reward))
    sample = replay.sample(jax.random.key(1), 400)
    assert set(np.asarray(sample.reward).tolist()) == {3.0, 4.0, 5.0, 6.0}
    np.testing.assert_array_equal(sample.observation[:, 0], sample.reward)


def trained(steps: int, **overrides):
    defaults = {"steps": steps, "replay.capacity": 2_000, "replay.warmup": steps}
    config = configure(overrides=defaults | overrides)
    loop = config.build_loop()
    state = loop.init(jax.random.key(3))
    return loop, *jax.jit(loop.chunk)(state, jnp.int32(steps))


def cell(observation: np.ndarray) -> tuple[int, int]:
    return int(observation[0]), int(observation[1])


def test_stored_transitions_are_steps_of_one_episode():
    """Every transition obeys the rules; none joins two episodes; only termination ends a return."""
    _, state, progress = trained(1_500)
    ring = jax.tree.map(np.asarray, state.replay.rows(jnp.arange(1_500)))
    ends = 0
    for step in range(1_500):
        before, after = cell(ring.observation[step]), cell(ring.next_observation[step])
        assert after in grid.arrivals(before, int(ring.action[step]))
        ended = after in (grid.TRAP, grid.TARGET)
        assert ring.discount[step] == (0.0 if ended else 0.5)
        ends += ended
        if step and cell(ring.next_observation[step - 1]) != before:
            # A new episode: the last one ended, by termination or by its 20 steps.
            assert before in grid.STATES
    assert 0 < ends <= int(progress.episodes)
    assert int(progress.updates) == 0


@pytest.mark.parametrize("kind", ["compiled", "host"])
def test_random_choices_last(kind):
    """With epsilon 1 the action changes only where a block of steps begins."""
    fields = {"loop": kind, "exploration.repeat": 5, "replay.warmup": 60, "exploration.end": 1.0}
    config = configure("CartPole-v1", "dqn", overrides=fields | {"replay.capacity": 100})
    lanes = config.build_lanes()
    lanes.advance(60)
    rows = lanes.snapshots()[0].rows([0], [60])
    stored = rows["0/actions"] if kind == "host" else np.asarray(rows["0/numbers"])[:, 0]
    actions = stored.reshape(12, 5)
    lanes.close()
    assert (actions == actions[:, :1]).all()
    # Twelve blocks that are all alike would be a chance of 1 in 2,048.
    assert 0 < actions[:, 0].sum() < 12


def test_truncation_can_be_treated_as_termination():
    _, kept, _ = trained(1_500)
    _, cut, _ = trained(1_500, truncation_terminates=True)
    ended = [tuple(o) in (grid.TRAP, grid.TARGET) for o in np.asarray(cut.replay.next_observations)]
    zeros = np.asarray(cut.replay.numbers[:1_500, 2]) == 0
    assert zeros.sum() > np.sum(ended)
    assert (np.asarray(kept.replay.numbers[:1_500, 2]) == 0).sum() == np.sum(ended)


def test_chunks_of_any_length_give_the_same_bits():
    config = configure(overrides={"steps": 260, "replay.warmup": 100, "replay.capacity": 300})
    loop = config.build_loop()
    chunk = jax.jit(loop.chunk)
    whole, _ = chunk(loop.init(jax.random.key(0)), jnp.int32(260))
    state = loop.init(jax.random.key(0))
    for steps in (37, 100, 3, 120):
        state, _ = chunk(state, jnp.int32(steps))
    for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(state), strict=True):
        if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
            one, other = jax.random.key_data(one), jax.random.key_data(other)
        np.testing.assert_array_equal(one, other)


def test_the_target_network_is_copied_at_its_interval():
    def run(steps):
        config = configure(
            overrides={"steps": 200, "replay.warmup": 50, "target_every": 60, "replay.capacity": 99}
        )
        loop = config.build_loop()
        state, _ = jax.jit(loop.chunk)(loop.init(jax.random.key(1)), jnp.int32(steps))
        return state.agent.params.torso.mlp.layers[
            0
        ].weight, state.agent.target_params.torso.mlp.layers[0].weight

    params, target = run(109)
    assert not np.array_equal(params, target)
    params, target = run(110)
    np.testing.assert_array_equal(params, target)


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
    config = configure(
        overrides={
            "steps": 1_500,
            "replay.warmup": 50,
            "target_every": 50,
            "metric.root": False,
            "optimiser.learning_rate": 3e-3,
            "optimiser.schedule": "cosine",
        }
    )
    built = config.build_loop()
    agent = type(built.agent)(
        env.spec,
        env.spec.domain,
        config.representation,
        config.metric,
        (16, 16),
        config.optimiser.build(1_450),
        50,
    )
    loop = CompiledLoop(agent, env, built.exploration, built.replay, 0.5, 1, False)
    state, _ = jax.jit(loop.chunk)(loop.init(jax.random.key(0)), jnp.int32(1_500))
    mean = agent.laws(state.agent.params, jnp.zeros(1))[0].mean
    # The step that stands for a Dirac is 0.04 wide; batches of 32 give the shares of both cases.
    assert float(mean) == pytest.approx(expected, abs=0.06)
