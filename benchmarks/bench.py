"""`make bench`: rates of our agents and of their peers, measured alternately in one run.

The machine may be shared and noisy, so every contestant gets a short turn in each round, and what
counts are medians over rounds and ratios of medians.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from umdqn.agents.algorithms import ALGORITHMS
from umdqn.loops.machine import available_cores, use_all_cores
from umdqn.runs.build import build_training
from umdqn.runs.configure import configure

use_all_cores()

import jax  # noqa: E402  (after the number of devices is set)

from overhead import overheads  # noqa: E402
from typed import typed  # noqa: E402

Rate = Callable[[int], float]

# Random actions cost no network: let all contestants explore equally little.
FAST = ("umdqn-kl", "umdqn-c", "umdqn-w", "dqn", "cdqn", "qr-dqn", "nc-qr-dqn")
FAIR = {"replay.warmup": 100, "exploration.start": 0.05, "exploration.end": 0.05}


def ours(
    agent: str,
    seeds: int = 1,
    env: str = "grid-world",
    preset: str = "paper",
    **overrides: Any,
) -> Rate:
    """Environment steps a second over all seeds, by default at the paper's settings."""
    config = configure(env, agent, preset, FAIR | {"seeds": seeds} | overrides)
    training = build_training(config)
    training.advance(300)

    def rate(steps: int) -> float:
        start = time.perf_counter()
        training.advance(steps)
        return steps * seeds / (time.perf_counter() - start)

    return rate


def contest(contestants: dict[str, tuple[Rate, int]], rounds: int) -> dict[str, float]:
    """Median rate of each contestant over alternating rounds."""
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, (rate, steps) in contestants.items():
            rates[name].append(rate(steps))
    return {name: statistics.median(values) for name, values in rates.items()}


def peers(rounds: int) -> dict[str, float]:
    """Ours beside SB3 and the UMNN package."""
    from peers import sb3_dqn, sb3_qrdqn, umnn_package

    contestants: dict[str, tuple[Rate, int]] = {}
    for agent in ALGORITHMS:
        steps = 1_000 if agent in FAST else 200
        contestants[f"{agent}, 1 seed"] = (ours(agent), steps)
    for agent in ("umdqn-kl", "umdqn-c", "umdqn-w"):
        contestants[f"{agent}, 4 seeds"] = (ours(agent, 4), 250)
    contestants["SB3 DQN"] = (sb3_dqn(), 500)
    contestants["SB3-contrib QR-DQN"] = (sb3_qrdqn(), 60)
    contestants["UMNN package, updates"] = (umnn_package(), 1)
    return contest(contestants, rounds)


def cartpole(rounds: int) -> dict[str, float]:
    """Both loops beside SB3's DQN, an update a step."""
    from peers import Settings, sb3_dqn

    contestants: dict[str, tuple[Rate, int]] = {
        "umdqn-c, compiled": (ours("umdqn-c", env="CartPole-v1"), 1_000),
        "umdqn-c, host": (ours("umdqn-c", env="CartPole-v1", loop="host"), 1_000),
        "SB3 DQN": (sb3_dqn("CartPole-v1", Settings()), 500),
    }
    return contest(contestants, rounds)


def minatar(rounds: int) -> dict[str, float]:
    """Beside SB3-contrib's QR-DQN with the same convolutions, an update every four steps."""
    from peers import sb3_qrdqn_minatar

    few = {"replay.capacity": 10_000}
    contestants: dict[str, tuple[Rate, int]] = {
        "umdqn-c": (ours("umdqn-c", env="MinAtar/Breakout", **few), 1_000),
        "SB3-contrib QR-DQN": (sb3_qrdqn_minatar("Breakout"), 200),
    }
    return contest(contestants, rounds)


def atari(rounds: int) -> dict[str, float]:
    """Beside SB3-contrib's QR-DQN with the same convolutions, an update every four steps."""
    from peers import sb3_qrdqn_atari

    contestants: dict[str, tuple[Rate, int]] = {
        "umdqn-c": (ours("umdqn-c", env="ALE/Pong", **{"replay.capacity": 2_000}), 200),
        "SB3-contrib QR-DQN": (sb3_qrdqn_atari("ALE/Pong"), 200),
    }
    return contest(contestants, rounds)


def scaling(rounds: int) -> dict[str, dict[str, float]]:
    """Milliseconds a step of UMDQN-C against points, width, and seeds."""
    variants: dict[str, dict[str, tuple[Rate, int]]] = {
        "points": {
            str(n): (ours("umdqn-c", **{"metric.points": n, "representation.intervals": n}), 400)
            for n in (50, 100, 200, 400, 800)
        },
        "hidden width": {
            str(n): (ours("umdqn-c", **{"representation.hidden": (n,)}), 400)
            for n in (32, 64, 128, 256, 512)
        },
        "seeds": {str(n): (ours("umdqn-c", n), 400 // n) for n in (1, 2, 4, 8)},
    }
    return {
        name: {label: 1e3 / rate for label, rate in contest(members, rounds).items()}
        for name, members in variants.items()
    }


def supports(rounds: int) -> dict[str, dict[str, float]]:
    """Learned supports beside the environment's fixed domain, preset `tuned`."""
    return {
        env: contest(
            {
                f"{agent}, {support}": (
                    ours(agent, env=env, preset="tuned", support=support),
                    1_000,
                )
                for agent in ("umdqn-kl", "umdqn-c", "umdqn-w")
                for support in ("learned", "fixed")
            },
            rounds,
        )
        for env in ("grid-world", "CartPole-v1")
    }


_FIRST_STEP = """
import sys, time
from umdqn.loops.machine import keep_compiled_programs
keep_compiled_programs()
import umdqn
class FirstChunk(umdqn.Callback):
    def on_chunk(self, report):
        print(time.time(), flush=True)
        raise SystemExit
umdqn.train(out=sys.argv[1], callbacks=[FirstChunk()], steps=2, chunk=2, **{"replay.warmup": 1})
"""


def start_up() -> dict[str, float]:
    """Seconds from starting Python to the first training step, without and with a cache."""
    with tempfile.TemporaryDirectory() as folder:

        def seconds(name: str) -> float:
            start = time.time()
            printed = subprocess.run(
                [sys.executable, "-c", _FIRST_STEP, f"{folder}/{name}"],
                env=os.environ | {"XDG_CACHE_HOME": folder},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            return float(printed.split()[-1]) - start

        return {"cold": seconds("cold"), "with compilation cache": seconds("cached")}


PARTS: dict[str, Callable[[int], dict[str, Any]]] = {
    "steps_per_second": peers,
    "CartPole-v1": cartpole,
    "MinAtar/Breakout": minatar,
    "ALE/Pong": atari,
    "typed_commands": typed,
    "supports": supports,
    "milliseconds_per_step": scaling,
    "first_step_seconds": lambda _: start_up(),
    "share_of_files": lambda _: overheads(),
}


def measure(part: str, rounds: int) -> dict[str, Any]:
    """A part in a process of its own, as users run them: nothing is left over from others."""
    command = [sys.executable, __file__, "--part", part, "--rounds", str(rounds)]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return json.loads(printed.splitlines()[-1])


def show(results: dict[str, Any]) -> None:
    """Print the tables."""
    rates = results["steps_per_second"]
    base = rates["SB3 DQN"]
    print(f"\n{'':28}{'steps/s':>10}{'x SB3 DQN':>12}{'x UMNN package':>17}")
    for name, rate in rates.items():
        package = rates["UMNN package, updates"]
        print(f"{name:28}{rate:10.1f}{rate / base:12.2f}{rate / package:17.0f}")
    ours_over_theirs = rates["qr-dqn, 1 seed"] / rates["SB3-contrib QR-DQN"]
    law_over_mean = rates["dqn, 1 seed"] / rates["umdqn-c, 1 seed"]
    print(f"\nour QR-DQN over SB3-contrib's: {ours_over_theirs:.1f}x")
    print(f"time a step of UMDQN-C over our DQN's: {law_over_mean:.2f}x")
    for env, row in results["environments"].items():
        (mine, rate), *others = row.items()
        ratios = "  ".join(f"{name} {other:.1f} ({rate / other:.2f}x)" for name, other in others)
        print(f"\n{env}, steps a second: {mine} {rate:.1f}, over {ratios}")
    typed_rates = results["typed_commands"]
    print("\nWhat users type, in processes of their own, steps a second:")
    for name, rate in typed_rates.items():
        print(f"{name:28}{rate:10.1f}{rate / typed_rates['SB3 DQN']:12.2f}x SB3 DQN")
    print("\nSteps a second with a learned support, over those with a fixed domain:")
    for env, row in results["supports"].items():
        agents = [name.removesuffix(", learned") for name in row if name.endswith(", learned")]
        ratios = (f"{a} {row[f'{a}, learned'] / row[f'{a}, fixed']:.2f}x" for a in agents)
        print(f"{env}: " + "  ".join(ratios))
    for name, row in results["milliseconds_per_step"].items():
        print(f"\nUMDQN-C, milliseconds a step (over all seeds) against {name}:")
        print("  ".join(f"{label}: {value:.2f}" for label, value in row.items()))
    for name, share in results["share_of_files"].items():
        print(f"\n{name}: checkpoints and metrics take {share:.2%} of the time")
    print("\nSeconds from the command to the first training step:")
    print(
        "  ".join(f"{name}: {value:.1f}" for name, value in results["first_step_seconds"].items())
    )


def main() -> None:
    """Measure, print, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results.json"))
    parser.add_argument("--part", choices=PARTS, help="only this one, as JSON")
    options = parser.parse_args()
    if options.part:
        print(json.dumps(PARTS[options.part](options.rounds)))
        return
    parts = {part: measure(part, options.rounds) for part in PARTS}
    environments = {env: parts.pop(env) for env in ("CartPole-v1", "MinAtar/Breakout", "ALE/Pong")}
    machine = {
        "cores": available_cores(),
        "python": platform.python_version(),
        "jax": jax.__version__,
        "platform": platform.machine(),
    }
    results = {"machine": machine, "environments": environments} | parts
    show(results)
    options.out.write_text(json.dumps(results, indent=2) + "\n")
    print(f"\n{options.out}")


if __name__ == "__main__":
    main()
