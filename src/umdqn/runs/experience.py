"""What a run has seen: the transitions that its newest checkpoint keeps."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from umdqn.errors import UmdqnError
from umdqn.runs.run import Run


class Experience(NamedTuple):
    """Transitions of one seed, oldest first."""

    observation: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    next_observation: np.ndarray
    terminated: np.ndarray


def experience(run: Run) -> dict[int, Experience]:
    """Return the transitions that the memory of each seed holds, for observations that are vectors.

    The memory is part of the newest checkpoints of a run; older ones keep the networks only.
    """
    agent, checkpoints = run.agent, run.directory.checkpoints
    if agent.spec.observation.is_picture:
        raise UmdqnError(f"{run.path}: transitions with pictures are kept as frames")
    like = jax.eval_shape(agent.init, jax.random.key(0))
    restored, _ = checkpoints.restore(run.step, dict.fromkeys(run.config.all_seeds, like))
    memory = run.config.replay.memory(agent.spec.observation, run.config.num_envs)
    found = {}
    for seed, one in restored.items():
        rings = memory.restore(one.entered, one.rows)
        counts = [min(entered, memory.storage.slots) for entered in one.entered]
        parts = [memory.storage.of_copy(rings, copy) for copy in range(memory.storage.copies)]
        kept = [
            {name: np.roll(ring, -entered, axis=0)[-count:] for name, ring in part.items()}
            if entered > count
            else {name: ring[:count] for name, ring in part.items()}
            for part, count, entered in zip(parts, counts, one.entered, strict=True)
        ]
        arrays = {name: np.concatenate([part[name] for part in kept]) for name in kept[0]}
        action, reward, discount = arrays["numbers"].T[:3]
        found[seed] = Experience(
            arrays["before"], action.astype(np.int64), reward, arrays["after"], discount == 0
        )
    return found
