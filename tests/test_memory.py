"""Memories in NumPy give back what was entered, and nothing else."""

import ctypes
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experience import LAYOUTS, PLANS, Experience, begun, enter
from umdqn.envs.catalogue import find
from umdqn.loops import snapshot
from umdqn.loops.snapshot import Snapshot
from umdqn.replay.memory import make_storage
from umdqn.replay.uniform import Uniform
from umdqn.specs import Observation


def filled(observation, capacity, plans, steps, batch_size):
    """A memory, its rings after some steps, and the experience."""
    memory = Uniform(capacity, batch_size).memory(observation, len(plans))
    experience = Experience(observation, plans)
    rings = begun(memory, memory.empty(np), experience)
    return memory, enter(memory, rings, experience, steps), experience


def test_a_frame_memory_holds_its_capacity_and_draws_all_of_it():
    memory, rings, experience = filled(
        LAYOUTS["stacked frames"], 400, [[(100, True)]], 900, batch_size=20_000
    )
    batch = memory.sample(rings, np.random.default_rng(0)).transition
    newest = {float(one.transition.reward) for one in experience.entered[0][-400:]}
    drawn = {float(reward) for reward in batch.reward}
    # 420 frames, of which 4 an episode begin or end it; 20,000 draws miss none of 400 (e^-50).
    assert len(drawn & newest) >= 390
    assert len(drawn) <= 420


@pytest.mark.parametrize(
    ("shape", "stack", "capacity", "copies", "slots"),
    [
        ((2,), 1, 10, 1, 10),
        ((2,), 1, 12, 3, 4),
        # A third of 10, rounded up.
        ((2,), 1, 10, 3, 4),
        # A spare row per 20 transitions: 105, and half of that, rounded up.
        ((84, 84), 4, 100, 1, 105),
        ((84, 84), 4, 100, 2, 53),
        ((5, 5, 3), 1, 39, 1, 40),
        # At least four stacks.
        ((84, 84), 4, 3, 1, 16),
    ],
)
def test_copies_share_a_capacity_equally(shape, stack, capacity, copies, slots):
    shape = (stack, *shape) if stack > 1 else shape
    seen = Observation(shape, "uint8" if len(shape) > 1 else "float32", stack=stack)
    assert make_storage(seen, capacity, copies).slots == slots


def test_a_pair_memory_is_first_in_first_out():
    plans = [[(30, True), (20, False), (40, True)]]
    memory, rings, experience = filled(LAYOUTS["pairs"], 50, plans, 90, batch_size=5_000)
    batch = memory.sample(rings, np.random.default_rng(0)).transition
    newest = {float(one.transition.reward) for one in experience.entered[0][-50:]}
    assert set(batch.reward.tolist()) == newest
    for before, _, reward, _, after, _ in zip(*batch, strict=True):
        known = experience.by_reward[float(reward)].transition
        np.testing.assert_array_equal(before, known.observation)
        np.testing.assert_array_equal(after, known.next_observation)


def saved_pieces(memory, rings, since, rows_a_piece):
    """All rows entered since given counts, in pieces, and the counts now."""
    small = snapshot._PIECE_BYTES // rows_a_piece
    entered = memory.entered(rings)

    def rows(first, last):
        return memory.rows(rings, first, last)

    saved = list(Snapshot(None, {}, entered, memory.room, small, rows).pieces(since))
    assert all(len(rows["0/numbers"]) <= rows_a_piece + 1 for _, rows in saved)
    assert saved[-1][0] == entered
    return [rows for _, rows in saved], entered


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=40, deadline=None)
@given(
    st.lists(PLANS, min_size=1, max_size=3),
    st.integers(8, 60),
    st.tuples(st.integers(1, 60), st.integers(1, 60)),
    st.integers(1, 40),
)
def test_memories_come_back_from_pieces(layout, plans, capacity, parts, rows_a_piece):
    """A memory saved at two moments, each time in several pieces, draws what it drew."""
    seen = LAYOUTS[layout]
    memory = Uniform(capacity, 100).memory(seen, len(plans))
    experience = Experience(seen, plans)
    rings = begun(memory, memory.empty(np), experience)
    pieces, since = [], [0] * len(plans)
    for steps in parts:
        rings = enter(memory, rings, experience, steps)
        saved, since = saved_pieces(memory, rings, since, rows_a_piece)
        pieces += saved
    restored = memory.restore(since, pieces)
    # Also after they continued: rows that go stale later are the same ones.
    for steps in (0, 1, 7):
        for more in experience.steps(steps):
            for copy, one in enumerate(more):
                rings = memory.add(rings, copy, *one)
                restored = memory.add(restored, copy, *one)
        for name in set(rings) - {"frames"}:
            # Of frames, slots that no valid row reaches may differ.
            np.testing.assert_array_equal(rings[name], restored[name], err_msg=name)
        drawn, again = (memory.sample(one, np.random.default_rng(0)) for one in (rings, restored))
        np.testing.assert_array_equal(drawn.index, again.index)
        for left, right in zip(drawn.transition, again.transition, strict=True):
            np.testing.assert_array_equal(left, right)


def test_atari_transitions_fit_in_little_memory():
    memory = Uniform(10_000).memory(find("ALE/Pong").spec.observation, 1)
    assert 10_000 * 84 * 84 < memory.nbytes <= 0.08e9


def test_the_size_of_a_memory_is_that_of_its_arrays():
    for copies in (1, 3):
        memory = Uniform(60).memory(Observation((4, 5, 5), "uint8", stack=4), copies)
        rings = memory.empty(np)
        arrays = sum(ring.nbytes for name, ring in rings.items() if name != "head")
        assert memory.nbytes == arrays


FAULTS = """
import resource
from umdqn.loops.machine import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    bytearray(b"1") * (64 * 2**20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

keep_freed_memory()
print(faults(), faults(), 64 * 2**20 // resource.getpagesize())
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="needs glibc")
def test_memory_that_was_freed_is_taken_again_without_faults():
    """In a process of its own: where a block goes depends on all that was freed before it."""
    process = subprocess.run(
        [sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True
    )
    first, second, pages = map(int, process.stdout.split())
    # A fresh block faults once a page, except for what was on the heap before; other threads may
    # fault a little meanwhile.
    assert first > pages // 2
    assert second < pages // 100
