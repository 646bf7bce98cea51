"""The contract of replay memories, in both layouts and both array libraries."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experience import LAYOUTS, PLANS, Experience, begun, enter, held
from umdqn.replay import frames as frames_module
from umdqn.replay.memory import Memory
from umdqn.replay.transition import Transition
from umdqn.replay.uniform import Uniform
from umdqn.specs import Observation

CAPACITY, BATCH = 24, 200


def memory_of(layout: str, copies: int, capacity: int = CAPACITY) -> Memory:
    return Uniform(capacity, BATCH).memory(LAYOUTS[layout], copies)


@cache
def compiled(layout: str):
    """Entering and drawing as programs do it; one compilation for all generated cases."""
    memory = memory_of(layout, 1)

    def add(rings, *seen):
        return memory.add(rings, 0, *seen)

    return jax.jit(add), jax.jit(memory.sample)


def check_batch(rings, batch, experience: Experience) -> None:
    """Every row happened, and says rightly whether it was the last of its episode."""
    known = experience.by_reward
    rows = [np.asarray(field) for field in batch.transition]
    last = np.asarray(rings["numbers"])[np.asarray(batch.index), 3]
    assert len(last) == BATCH
    for before, action, reward, discount, after, followed, ended in zip(*rows, last, strict=True):
        entered = known[float(reward)]
        np.testing.assert_array_equal(before, entered.transition.observation)
        np.testing.assert_array_equal(after, entered.transition.next_observation)
        assert (action, discount) == (entered.transition.action, entered.transition.discount)
        assert ended == entered.last
        # No policy to follow was given.
        assert followed == -1
    np.testing.assert_array_equal(batch.weight, np.ones(BATCH))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("copies", [1, 3])
@settings(max_examples=40, deadline=None)
@given(data=st.data(), capacity=st.integers(8, 60), steps=st.integers(1, 70))
def test_numpy_memories_draw_what_happened(layout, copies, data, capacity, steps):
    plans = data.draw(st.lists(PLANS, min_size=copies, max_size=copies))
    memory = memory_of(layout, copies, capacity)
    experience = Experience(LAYOUTS[layout], plans)
    rings = begun(memory, memory.empty(np), experience)
    rings = enter(memory, rings, experience, steps)
    batch = memory.sample(rings, np.random.default_rng(0))
    check_batch(rings, batch, experience)
    # What can be drawn is all that the memory must hold, and nothing else.
    drawn = set(batch.transition.reward.tolist())
    expected = held(memory, experience)
    assert drawn <= expected
    slots = np.arange(copies * memory.storage.slots)
    stored = rings.get("valid", slots % memory.storage.slots < steps)
    rewards = memory.storage.transitions(rings, np.flatnonzero(stored)).reward
    assert set(rewards.tolist()) == expected


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=15, deadline=None)
@given(plan=PLANS, steps=st.integers(1, 60))
def test_compiled_memories_hold_what_numpy_memories_hold(layout, plan, steps):
    memory, experience = memory_of(layout, 1), Experience(LAYOUTS[layout], [plan])
    add, sample = compiled(layout)
    rings = begun(memory, memory.empty(np), experience)
    twins = begun(memory, memory.empty(jnp), experience)
    for (seen,) in experience.steps(steps):
        rings, twins = memory.add(rings, 0, *seen), add(twins, *seen)
    for name, ring in rings.items():
        np.testing.assert_array_equal(ring, twins[name], err_msg=name)
    key = jax.random.key(steps)
    batch = sample(twins, key)
    check_batch(twins, batch, experience)
    # The rows behind an index are the same ones.
    rows = memory.storage.transitions(rings, np.asarray(batch.index))
    for left, right in zip(rows, batch.transition, strict=True):
        np.testing.assert_array_equal(left, right)
    # Restored from files, a compiled memory draws the same.
    entered = memory.entered(twins)
    first = [max(entered[0] - memory.room[0], 0)]
    restored = memory.restore(entered, [memory.rows(twins, first, entered)])
    again = sample({name: jnp.asarray(restored[name], twins[name].dtype) for name in twins}, key)
    for left, right in zip(jax.tree.leaves(batch), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(left, right)


def summed(experience: Experience, n_step: int) -> dict[float, Transition]:
    """What n steps bring, by the reward of the first, from the list of what happened."""
    found = {}
    for entered in experience.entered:
        for start, one in enumerate(entered):
            reward, discount, after = 0.0, 1.0, one
            for after in entered[start : start + n_step]:
                reward += discount * float(after.transition.reward)
                discount *= float(after.transition.discount)
                if after.last:
                    break
            found[float(one.transition.reward)] = one.transition._replace(
                reward=reward, discount=discount, next_observation=after.transition.next_observation
            )
    return found


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("copies", [1, 3])
@settings(max_examples=30, deadline=None)
@given(data=st.data(), n_step=st.integers(1, 6), steps=st.integers(1, 70))
def test_n_steps_sum_rewards_up_to_the_end_of_an_episode(layout, copies, data, n_step, steps):
    plans = data.draw(st.lists(PLANS, min_size=copies, max_size=copies))
    memory = Uniform(CAPACITY, BATCH, n_step=n_step).memory(LAYOUTS[layout], copies)
    experience = Experience(LAYOUTS[layout], plans)
    rings = enter(memory, begun(memory, memory.empty(np), experience), experience, steps)
    batch = memory.sample(rings, np.random.default_rng(0))
    first = memory.storage.transitions(rings, batch.index).reward
    expected = summed(experience, n_step)
    for reward, *row in zip(first, *batch.transition, strict=True):
        for found, known in zip(row[:-1], expected[float(reward)][:-1], strict=True):
            np.testing.assert_allclose(found, known, rtol=1e-6)


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_transition_is_drawn_with_the_same_probability(layout, copies):
    """60,000 draws: each of n transitions about 60,000 / n times, within 5 standard errors."""
    draws = 60_000
    memory = Uniform(CAPACITY, draws).memory(LAYOUTS[layout], copies)
    experience = Experience(LAYOUTS[layout], [[(4, True), (7, False)]] * copies)
    rings = begun(memory, memory.empty(np), experience)
    rings = enter(memory, rings, experience, 60)
    rewards = memory.sample(rings, np.random.default_rng(1)).transition.reward
    found, counts = np.unique(rewards, return_counts=True)
    expected = held(memory, experience)
    assert set(found.tolist()) == expected
    share = draws / len(expected)
    assert np.abs(counts - share).max() < 5 * np.sqrt(share)


def test_replay_forgets_the_oldest_and_samples_only_what_is_stored():
    memory = Uniform(capacity=4, batch_size=400).memory(Observation((2,)), 1)
    rings, sample = memory.empty(jnp), jax.jit(memory.sample)

    def entered(rings, *rewards):
        for reward in rewards:
            seen = jnp.full(2, reward)
            one = Transition(seen, jnp.int32(0), jnp.float32(reward), jnp.float32(0), seen)
            rings = memory.add(rings, 0, one, False, seen)
        return rings

    rings = entered(rings, 1.0, 2.0)
    drawn = set(np.asarray(sample(rings, jax.random.key(0)).transition.reward).tolist())
    assert drawn == {1.0, 2.0}
    rings = entered(rings, 3.0, 4.0, 5.0, 6.0)
    batch = sample(rings, jax.random.key(1)).transition
    assert set(np.asarray(batch.reward).tolist()) == {3.0, 4.0, 5.0, 6.0}
    np.testing.assert_array_equal(batch.observation[:, 0], batch.reward)


@pytest.mark.parametrize("arrays", [np, jnp], ids=["numpy", "jax"])
def test_an_interruption_ends_the_episode_of_the_newest_row(arrays):
    """A new episode begins without an end in between, as after resuming: n-step sums stop there."""
    memory = memory_of("pairs", 1)
    experience = Experience(LAYOUTS["pairs"], [[(9, True)]])
    rings = begun(memory, memory.empty(arrays), experience)
    assert not np.asarray(rings["numbers"]).any()
    rings = enter(memory, rings, experience, 3)
    before = np.array(rings["numbers"][:3])
    rings = memory.begin(rings, 0, experience.firsts[0])
    np.testing.assert_array_equal(rings["numbers"][:3, :3], before[:, :3])
    np.testing.assert_array_equal(rings["numbers"][:3, 3], [0, 0, 1])


def test_copies_draw_from_the_filled_part_of_their_rings(monkeypatch):
    """Of a large memory that is nearly empty, few draws are in vain."""
    memory = Uniform(100_000, 32).memory(LAYOUTS["frames"], 5)
    experience = Experience(LAYOUTS["frames"], [[(50, True)]] * 5)
    rings = enter(memory, begun(memory, memory.empty(np), experience), experience, 40)
    drawn, usual = [], frames_module.draw_valid

    def counted(random, high, *rest):
        drawn.append(int(high))
        return usual(random, high, *rest)

    monkeypatch.setattr(frames_module, "draw_valid", counted)
    memory.sample(rings, np.random.default_rng(0))
    # 40 frames and the first one, of each of 5 copies.
    assert drawn == [5 * 41]
