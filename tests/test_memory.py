"""Memories in NumPy give back what was entered, and nothing else."""

import ctypes
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from umdqn.envs import find
from umdqn.loops import FrameMemory, PairMemory, Snapshot, make_memory, snapshot
from umdqn.types import Observation


def drive(memory, episodes, copies=1):
    """Enter episodes of the given lengths; the transitions that were entered, newest last."""
    entered = []
    stamp = 0
    for number, length in enumerate(episodes):
        copy = number % copies
        stack = [np.full((2, 2), 0)] * 3 + [np.full((2, 2), stamp := stamp + 1)]
        memory.start(copy, np.stack(stack).astype(np.uint16))
        for step in range(length):
            before = np.stack(stack)
            stack = [*stack[1:], np.full((2, 2), stamp := stamp + 1)]
            discount = 0.0 if step == length - 1 else 0.9
            memory.add(copy, step, float(stamp), discount, np.stack(stack).astype(np.uint16))
            entered.append((before, step, float(stamp), discount, np.stack(stack)))
    return entered


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=25), st.integers(8, 60), st.integers(1, 3))
def test_frames_kept_once_give_back_what_was_entered(lengths, capacity, copies):
    memory = FrameMemory(Observation((4, 2, 2), "uint16", stack=4), capacity, copies)
    lengths = lengths + [3] * copies  # every copy has something
    entered = {row[2]: row for row in drive(memory, lengths, copies)}
    batch = memory.sample(np.random.default_rng(0), 200)
    for before, action, reward, discount, after in zip(*batch, strict=True):
        known = entered[float(reward)]
        np.testing.assert_array_equal(before, known[0])
        np.testing.assert_array_equal(after, known[4])
        assert (action, np.float32(discount)) == (known[1], np.float32(known[3]))


def test_a_frame_memory_holds_its_capacity_and_draws_all_of_it():
    memory = FrameMemory(Observation((4, 2, 2), "uint16", stack=4), 400, 1)
    entered = drive(memory, [100] * 9)
    batch = memory.sample(np.random.default_rng(0), 20_000)
    newest = {row[2] for row in entered[-400:]}
    drawn = {float(reward) for reward in batch.reward}
    # 420 frames, of which 4 an episode begin or end it; 20,000 draws miss none of 400 (e^-50).
    assert len(drawn & newest) >= 390
    assert len(drawn) <= 420


def test_a_pair_memory_is_first_in_first_out():
    memory = PairMemory(Observation((4, 2, 2), "uint16"), 50, 1)
    entered = drive(memory, [30, 20, 40])
    batch = memory.sample(np.random.default_rng(0), 5_000)
    assert set(batch.reward.tolist()) == {row[2] for row in entered[-50:]}
    by_reward = {row[2]: row for row in entered}
    for before, _, reward, _, after in zip(*batch, strict=True):
        np.testing.assert_array_equal(before, by_reward[float(reward)][0])
        np.testing.assert_array_equal(after, by_reward[float(reward)][4])


@settings(max_examples=60, deadline=None)
@given(
    st.booleans(),
    st.lists(st.integers(1, 9), min_size=2, max_size=25),
    st.integers(8, 60),
    st.integers(1, 3),
    st.integers(1, 40),
)
def test_memories_come_back_from_pieces(whole_frames, lengths, capacity, copies, rows_a_piece):
    """A memory saved at two moments, each time in several pieces, draws what it drew."""
    kind = FrameMemory if whole_frames else PairMemory
    seen = Observation((4, 2, 2), "uint16", stack=4)
    memory, restored = kind(seen, capacity, copies), kind(seen, capacity, copies)
    pieces, since = [], [0] * len(memory.entered)
    for part in (lengths[::2], lengths[1::2]):
        drive(memory, part, copies)
        small = snapshot._PIECE_BYTES // rows_a_piece
        now = Snapshot(None, {}, memory.entered, memory.room, small, memory.rows)
        saved = list(now.pieces(since))
        assert all(len(rows["0/actions"]) <= rows_a_piece + 1 for _, rows in saved)
        pieces += [rows for _, rows in saved]
        since = saved[-1][0]
        assert since == memory.entered
    restored.restore(memory.entered, pieces)
    drawn, again = (one.sample(np.random.default_rng(0), 100) for one in (memory, restored))
    for left, right in zip(drawn, again, strict=True):
        np.testing.assert_array_equal(left, right)


def test_atari_transitions_fit_in_little_memory():
    spec = find("ALE/Pong").spec
    memory = make_memory(spec, 10_000, 1)
    assert 10_000 * 84 * 84 < memory.nbytes <= 0.08e9


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
