"""`make accuracy`: how true the laws are, per algorithm and preset, over five seeds."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from umdqn.analysis import accuracy_report, distances, truth
from umdqn.envs.grid_world import STATES
from umdqn.progress import TrainingDisplay
from umdqn.runs import Run, configure, train_config

CASES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("umdqn-kl", "paper", {"steps": 60_000}),
    ("umdqn-c", "paper", {"steps": 60_000}),
    ("umdqn-c", "paper", {"steps": 60_000, "metric.root": True}),
    ("umdqn-w", "paper", {"steps": 60_000}),
    ("umdqn-kl", "tuned", {}),
    ("umdqn-c", "tuned", {}),
    ("umdqn-w", "tuned", {}),
)


def at_figure_state(run: Run) -> float:
    """Wasserstein-1 at (2, 6) RIGHT, averaged over seeds."""
    exact, state = truth(run.config.discount), STATES.index((2, 6))
    errors = [
        distances(run.agent, params, exact, run.config.discount).w1[state, 0]
        for params in run.params.values()
    ]
    return float(sum(errors) / len(errors))


def measure(agent: str, preset: str, overrides: dict[str, Any], seeds: int) -> dict[str, Any]:
    """Train and compare."""
    config = configure("grid-world", agent, preset, {"seeds": seeds} | overrides)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, TrainingDisplay(config) as display:
        run = train_config(config, Path(folder) / "run", display.update, display.started)
        report = accuracy_report(run) | {"w1_at_2_6_right": at_figure_state(run)}
    return {
        "agent": agent,
        "preset": preset,
        "overrides": overrides,
        "steps": config.steps,
        "seconds": time.monotonic() - start,
        **report,
    }


def main() -> None:
    """Measure, print, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", nargs=2, metavar=("AGENT", "PRESET"))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/accuracy.json"))
    options = parser.parse_args()
    results = json.loads(options.out.read_text()) if options.only and options.out.exists() else []
    columns = ("w1", "w1_at_2_6_right", "w1_greedy", "ks", "mean_error", "optimal_actions")
    print(f"{'agent':10}{'preset':8}{'steps':>8}  " + "  ".join(f"{c:>15}" for c in columns))
    for agent, preset, overrides in CASES:
        if options.only and (agent, preset) != tuple(options.only):
            continue
        row = measure(agent, preset, overrides, options.seeds)
        key = (agent, preset, overrides)
        results = [r for r in results if (r["agent"], r["preset"], r["overrides"]) != key] + [row]
        numbers = "  ".join(f"{row[column]:15.4f}" for column in columns)
        print(f"{agent:10}{preset:8}{row['steps']:8}  {numbers}", flush=True)
        options.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
