"""What the full study costs, from measured rates: writes docs/scale.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import jax

from umdqn.runs.build import build_agent, environment
from umdqn.runs.configure import configure
from umdqn.runs.directory import MOST_OLDER
from umdqn.studies.cost import rates
from umdqn.studies.paper.scales import ATARI, BASELINES, CLASSIC, MINATAR, SCALES, UMDQN

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "scale.md"
AGENTS = (*UMDQN, *BASELINES)
SEEDS = 5
FAMILY = {
    "grid-world": "grid-world",
    **dict.fromkeys(CLASSIC, "classic-control"),
    **dict.fromkeys(MINATAR, "minatar"),
    **dict.fromkeys(ATARI, "atari"),
}


class Machine(NamedTuple):
    """Cores, how many jobs keep all of them at full speed, and what an hour costs."""

    name: str
    cores: int
    dollars: float


# Prices: 0.04 dollars a core-hour, as clouds ask for shared cores.
MACHINES = (
    Machine("laptop, 8 cores", 8, 0.0),
    Machine("one server, 64 cores", 64, 64 * 0.04),
    Machine("Ray, 8 servers of 64 cores", 512, 512 * 0.04),
)
# Not measured. An update of the Atari networks is some 20 small kernels: 1.5 ms with five seeds
# batched, bound by launches; environments on the server's cores keep up with 4 steps an update.
GPU_UPDATE_SECONDS = 1.5e-3
GPU_DOLLARS = 2.0
HEAD = ("| machine | hours | days | dollars |", "| --- | --- | --- | --- |")

# Memory of a run on Atari, in GB (docs/pictures.md).
ATARI_MEMORY = 1.5


def seed_hours(env: str, agent: str, steps: int) -> float:
    """Hours of one core for one seed, the smallest job."""
    return steps / rates().get(env, rates()[FAMILY[env]])[agent] / 3600


def core_hours(env: str, agent: str, steps: int) -> float:
    """Hours of one core for all seeds."""
    return SEEDS * seed_hours(env, agent, steps)


def longest() -> float:
    """Hours of the longest job: no number of cores is faster."""
    return max(
        seed_hours(env, agent, part.steps)
        for part in SCALES["paper"]
        for env in part.envs
        for agent in AGENTS
    )


def study() -> dict[str, float]:
    """Core-hours of the 13 environments, by family."""
    total: dict[str, float] = {}
    for part in SCALES["paper"]:
        for env in part.envs:
            hours = sum(core_hours(env, agent, part.steps) for agent in AGENTS)
            total[FAMILY[env]] = total.get(FAMILY[env], 0.0) + hours
    return total


def atari57() -> float:
    """Core-hours of 57 games."""
    steps = next(part.steps for part in SCALES["paper"] if part.envs == ATARI)
    return 57 * sum(core_hours("ALE/Pong", agent, steps) for agent in AGENTS)


def row(name: str, hours: float, cores: int, dollars: float) -> str:
    """A line of the table; jobs are independent: cores divide the time down to the longest job."""
    took = max(hours / cores, longest())
    price = f"{took * dollars:,.0f}" if dollars else "-"
    return f"| {name} | {took:,.0f} | {took / 24:,.1f} | {price} |"


def gpu_hours() -> float:
    """Hours of one GPU for Atari-57, all seeds of an agent batched."""
    steps = next(part.steps for part in SCALES["paper"] if part.envs == ATARI)
    return 57 * len(AGENTS) * steps / 4 * GPU_UPDATE_SECONDS / 3600


def disk() -> float:
    """Gigabytes of one run on Atari: its memory, and what its checkpoints have learned."""
    config = configure("ALE/Pong", "umdqn-c")
    agent = jax.eval_shape(build_agent(config).init, jax.random.key(0))
    learned = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(agent))
    memory = config.replay.memory(environment(config).spec.observation, 1).nbytes
    return (memory + (MOST_OLDER + config.checkpoint_keep) * learned) / 1e9


def rates_lines() -> list[str]:
    """What was measured."""
    machine = json.loads((ROOT / "src/umdqn/studies/rates.json").read_text())["machine"]
    return [
        "Made by `python benchmarks/scale.py` from the rates in `src/umdqn/studies/rates.json`, "
        f"measured by `python benchmarks/rates.py` on one core of {machine['processor']} "
        f"({machine['cores']} cores, {machine['system']}).",
        "",
        "## Rates: steps a second, one seed on one core, the paper's settings",
        "",
        "| agent | " + " | ".join(rates()) + " |",
        "| --- " * (1 + len(rates())) + "|",
        *(
            f"| `{agent}` | " + " | ".join(f"{of[agent]:,.0f}" for of in rates().values()) + " |"
            for agent in AGENTS
        ),
        "",
    ]


def study_lines() -> list[str]:
    """The paper's study."""
    families = study()
    whole = sum(families.values())
    of_three = gpu_hours() * len(ATARI) / 57
    beside = max(of_three, (whole - families["atari"]) / 8)
    return [
        f"## 13 environments x {len(AGENTS)} algorithms x {SEEDS} seeds",
        "",
        "The reference trains 10,000 episodes; as steps: "
        + "; ".join(f"{', '.join(p.envs)}: {p.steps:,}" for p in SCALES["paper"])
        + f". That is {whole:,.0f} core-hours: "
        + ", ".join(f"{name} {hours:,.0f}" for name, hours in families.items())
        + ".",
        "",
        *HEAD,
        *(row(m.name, whole, m.cores, m.dollars) for m in MACHINES),
        f"| 8 cores and one GPU for Atari (assumed, see below) | {beside:,.0f} | "
        f"{beside / 24:,.1f} | {beside * (GPU_DOLLARS + 8 * 0.04):,.0f} |",
        "",
    ]


def atari_lines() -> list[str]:
    """The benchmark that the paper leaves out."""
    steps = next(part.steps for part in SCALES["paper"] if part.envs == ATARI)
    games, gpu = atari57(), gpu_hours()
    return [
        f"## Atari-57 x {len(AGENTS)} algorithms x {SEEDS} seeds",
        "",
        f"With {steps:,} steps a game this is {games:,.0f} core-hours.",
        "",
        *HEAD,
        *(row(m.name, games, m.cores, m.dollars) for m in MACHINES),
        f"| one GPU (assumed, see below) | {gpu:,.0f} | {gpu / 24:,.1f} | "
        f"{gpu * GPU_DOLLARS:,.0f} |",
        f"| 8 GPUs (assumed) | {gpu / 8:,.0f} | {gpu / 8 / 24:,.1f} | {gpu * GPU_DOLLARS:,.0f} |",
        "",
    ]


def assumptions() -> list[str]:
    """What the numbers hang on."""
    runs = len(ATARI) * len(AGENTS) * SEEDS
    return [
        "## Assumptions",
        "",
        "- Jobs are independent: n cores take 1/n of the time, as long as that is longer than the "
        f"longest job, one seed that takes {longest():,.0f} hours. With one seed a job "
        f"(`--seeds-per-run 1`) the study has {13 * len(AGENTS) * SEEDS} jobs.",
        f"- A job on Atari takes {ATARI_MEMORY:g} GB of memory: 64 at once take "
        f"{64 * ATARI_MEMORY:,.0f} GB.",
        f"- A finished run on Atari takes at most {disk():.1f} GB of disk (its replay memory, and "
        f"what at most {MOST_OLDER} older checkpoints and the newest have learned): the study's "
        f"{runs} such runs {runs * disk():,.0f} GB, Atari-57 "
        f"{57 * len(AGENTS) * SEEDS * disk() / 1e3:,.1f} TB. All others take less.",
        "- Environments that stand under Rates by their own name count with that rate, all others "
        "with that of their family: classic control was measured on CartPole, compiled. "
        "LunarLander's physics runs in Python and takes longer than that.",
        "- Every core is as fast as the one measured; many busy cores of one server share memory "
        "bandwidth, which the Atari networks feel first.",
        "- Evaluations are not counted; checkpoints and metrics take less than 1% "
        "(`benchmarks/results.json`).",
        "- Cores at 0.04 dollars an hour; a GPU at 2 dollars an hour.",
        "- GPUs were not measured. The estimate takes 1.5 ms for an update with five seeds batched "
        "(launches of small kernels, not arithmetic, are the bound) and environments that keep up "
        "on the host's cores. On the small networks of the grid world and classic control a GPU is "
        "no faster than a core.",
    ]


def main() -> None:
    """Compute and write."""
    lines = ["# What the full study costs", ""]
    lines += [*rates_lines(), *study_lines(), *atari_lines(), *assumptions()]
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text("\n".join(lines) + "\n")
    print(OUT)


if __name__ == "__main__":
    main()
