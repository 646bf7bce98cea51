"""Measure the returns of a uniformly random policy, which normalised scores count as 0.

The results are in `src/umdqn/analysis/reference_scores.json`:
`python benchmarks/reference_scores.py [ENV ...]`.
"""

from __future__ import annotations

import sys

import numpy as np

from umdqn.analysis.reference import reference_scores
from umdqn.envs.catalogue import find

_STEPS = 60_000
"""Least number of steps on each environment; the last episodes are played to their ends."""


def random_return(name: str) -> tuple[float, float, int]:
    """Return mean and standard error of the undiscounted return, and the number of episodes."""
    env = find(name).hosted(1)
    random = np.random.default_rng(0)
    env.reset(0)
    returns, total, steps = [], 0.0, 0
    limit = env.spec.time_limit or 27_000
    length = 0
    while steps < _STEPS:
        step = env.step(random.integers(env.spec.num_actions, size=1))
        total, length, steps = total + float(step.reward[0]), length + 1, steps + 1
        if step.terminated[0] or step.truncated[0] or length >= limit:
            returns.append(total)
            total, length = 0.0, 0
    env.close()
    error = float(np.std(returns) / np.sqrt(len(returns)))
    return float(np.mean(returns)), error, len(returns)


def main() -> None:
    """Print one line per environment."""
    for name in sys.argv[1:] or reference_scores():
        mean, error, episodes = random_return(name)
        print(f"{name}: {mean:.3f} +- {error:.3f} over {episodes:,} episodes", flush=True)


if __name__ == "__main__":
    main()
