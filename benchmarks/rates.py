"""Steps a second of every agent on a game of every family: what estimates of time are made of.

One seed on one core, as in a sweep, after compiling, with the preset `paper` (a shorter warm-up,
the same work). Writes src/umdqn/studies/rates.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import time
from pathlib import Path

from umdqn.agents.algorithms import ALGORITHMS
from umdqn.envs.catalogue import CATALOGUE
from umdqn.runs.build import build_training
from umdqn.runs.configure import configure
from umdqn.sweeps.work import claim_core

OUT = Path(__file__).parents[1] / "src" / "umdqn" / "studies" / "rates.json"
SECONDS = 4.0
FAMILIES = {
    "grid-world": "grid-world",
    "classic-control": "CartPole-v1",
    "LunarLander-v3": "LunarLander-v3",
    "minatar": "MinAtar/Breakout",
    "atari": "ALE/Pong",
}
WARMUP = 1_000


def rate(env: str, agent: str) -> float:
    """Steps a second of one seed."""
    # Random actions cost no network, and most of a study is spent with few of them.
    few = {"exploration.start": 0.05, "exploration.end": 0.05}
    fields = {"replay.warmup": WARMUP, "replay.capacity": 10_000, "steps": 1_000_000} | few
    training = build_training(configure(env, agent, "paper", fields))
    try:
        training.advance(WARMUP + 8)
        steps, start = 0, time.perf_counter()
        while time.perf_counter() - start < SECONDS:
            training.advance(100)
            steps += 100
        return steps / (time.perf_counter() - start)
    finally:
        training.close()


def measured() -> dict[str, dict[str, float]]:
    """All rates."""
    rates: dict[str, dict[str, float]] = {}
    for family, env in FAMILIES.items():
        assert env in CATALOGUE
        for agent in ALGORITHMS:
            rates.setdefault(family, {})[agent] = round(rate(env, agent), 1)
            print(f"{family:16} {agent:10} {rates[family][agent]:8.1f} steps/s", flush=True)
    return rates


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    with claim_core() or contextlib.nullcontext():
        rates = measured()
    machine = {"system": platform.platform(), "cores": os.cpu_count(), "processor": _processor()}
    text = json.dumps({"machine": machine, "steps_per_second": rates}, indent=2)
    options.out.write_text(text + "\n")


def _processor() -> str:
    lines = (
        Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []
    )
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


if __name__ == "__main__":
    main()
