"""Train UMDQN-KL on the grid world and lay the learned laws over the exact ones."""

import sys
import tempfile
from pathlib import Path

from umdqn.cli.main import main

STEPS, SEEDS, STATE = "60000", "2", "2,6"


def run(*arguments: str) -> None:
    """One command, shown as a user would type it."""
    print(f"\n$ umdqn {' '.join(arguments)}", flush=True)
    code = main(arguments)
    if code:
        sys.exit(code)


if __name__ == "__main__":
    Path("runs").mkdir(exist_ok=True)
    out = tempfile.mkdtemp(prefix="demo-", dir="runs")
    train = ["grid-world", "umdqn-kl", "--preset", "tuned", "--steps", STEPS, "--seeds", SEEDS]
    run("train", *train, "--out", out)
    run("evaluate", out, "--episodes", "1000")
    run("accuracy", out)
    run("laws", out, "--state", STATE, "--out", f"{out}/laws.png")
    print(f"\nThe figure is {out}/laws.png: learned laws plain, exact ones dotted.")
