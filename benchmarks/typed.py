"""Rates of what users type, measured from outside: `python benchmarks/typed.py [--rounds N]`.

Every command runs in a fresh process at two lengths; the difference of the two leaves out start-up
and compilation. Ours and SB3's DQN take turns, because the machine may be shared and noisy.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# No evaluation or checkpoint inside, little random exploration, an update per step.
FIELDS = [
    "--replay.warmup=500",
    "--exploration.start=0.05",
    "--exploration.end=0.05",
    "--evaluation.every=1000000",
    "--evaluation.episodes=1",
    "--checkpoint-every=1000000",
]
SHORT = 2_000
PEER = """
import sys
sys.path.insert(0, {folder!r})
from peers import sb3_dqn
sb3_dqn()({steps})
"""


def seconds(command: list[str]) -> float:
    """Return how long a command takes."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def ours(agent: str, seeds: int, steps: int) -> float:
    """Return steps per second over all seeds of `umdqn train`."""

    def run(length: int) -> float:
        with tempfile.TemporaryDirectory() as folder:
            out = ["--out", str(Path(folder) / "run")]
            train = [sys.executable, "-m", "umdqn", "train", "grid-world", agent]
            return seconds([*train, f"--seeds={seeds}", f"--steps={length}", *FIELDS, *out])

    return seeds * steps / (run(SHORT + steps) - run(SHORT))


def peer(steps: int) -> float:
    """Return steps per second of SB3's DQN."""

    def run(length: int) -> float:
        script = PEER.format(folder=str(Path(__file__).parent), steps=length)
        return seconds([sys.executable, "-c", script])

    return steps / (run(SHORT + steps) - run(SHORT))


def typed(rounds: int, steps: int = 8_000) -> dict[str, float]:
    """Return median rates over rounds."""
    contestants = {
        "umdqn-c, 1 seed": lambda: ours("umdqn-c", 1, steps),
        "umdqn-c, 2 seeds": lambda: ours("umdqn-c", 2, steps),
        "umdqn-c, 4 seeds": lambda: ours("umdqn-c", 4, steps),
        "SB3 DQN": lambda: peer(steps),
    }
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, rate in contestants.items():
            rates[name].append(rate())
            print(f"{name}: {rates[name][-1]:,.0f} steps/s", file=sys.stderr)
    return {name: statistics.median(found) for name, found in rates.items()}


def main() -> None:
    """Print the rates as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8_000)
    options = parser.parse_args()
    print(json.dumps(typed(options.rounds, options.steps), indent=2))


if __name__ == "__main__":
    main()
