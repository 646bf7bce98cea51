"""Three scales of the paper's study, as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from umdqn.sweeps.plan import Job, Sweep

UMDQN = ("umdqn-kl", "umdqn-c", "umdqn-w")
BASELINES = ("dqn", "cdqn", "qr-dqn", "iqn", "fqf")
CLASSIC = ("CartPole-v1", "Acrobot-v1", "MountainCar-v0", "LunarLander-v3")
MINATAR = tuple(
    f"MinAtar/{game}" for game in ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")
)
ATARI = ("ALE/Pong", "ALE/Boxing", "ALE/Freeway")


class Part(NamedTuple):
    """Environments that are trained with the same settings."""

    envs: tuple[str, ...]
    agents: tuple[str, ...]
    preset: str
    steps: int
    seeds: int
    fields: Mapping[str, Any]


def _evaluated(every: int, episodes: int, **more: Any) -> dict[str, Any]:
    return {"evaluation.every": every, "evaluation.episodes": episodes, **more}


_ALL = (*UMDQN, *BASELINES)
_TINY = {"replay.warmup": 200, "replay.batch_size": 8, "update_every": 8, "target.every": 80}
# Half the updates of the preset, so that the scale takes hours and not a day.
_SELDOM = {"update_every": 4}
# The reference trains 10,000 episodes; these are about as many steps.
SCALES: dict[str, tuple[Part, ...]] = {
    "smoke": (
        Part(("grid-world",), _ALL, "paper", 800, 2, _evaluated(200, 5, **_TINY)),
        Part(CLASSIC[:2], _ALL, "paper", 600, 2, _evaluated(200, 2, **_TINY)),
        Part(CLASSIC[2:], UMDQN, "paper", 600, 1, _evaluated(200, 1, **_TINY)),
        Part(
            (*MINATAR, *ATARI),
            UMDQN[1:2],
            "paper",
            400,
            1,
            _evaluated(200, 1, **{"evaluation.limit": 50, "replay.capacity": 500}, **_TINY),
        ),
    ),
    "short": (
        Part(("grid-world",), _ALL, "paper", 50_000, 5, _evaluated(2_000, 100)),
        Part(CLASSIC[:3], _ALL, "tuned", 60_000, 5, _evaluated(2_000, 20, **_SELDOM)),
        Part(CLASSIC[3:], _ALL, "tuned", 60_000, 5, _evaluated(5_000, 10, **_SELDOM)),
        Part(MINATAR, _ALL, "tuned", 100_000, 1, _evaluated(10_000, 10)),
    ),
    "paper": (
        Part(("grid-world",), _ALL, "paper", 150_000, 5, _evaluated(5_000, 100)),
        Part(CLASSIC[:3], _ALL, "paper", 1_000_000, 5, _evaluated(10_000, 50)),
        Part(CLASSIC[3:], _ALL, "paper", 2_000_000, 5, _evaluated(20_000, 50)),
        Part(MINATAR, _ALL, "paper", 5_000_000, 5, _evaluated(50_000, 30)),
        Part(ATARI, _ALL, "paper", 10_000_000, 5, _evaluated(100_000, 10)),
    ),
}


def jobs_of(scale: str, envs: Iterable[str], agents: Iterable[str]) -> list[Job]:
    """Return the trainings of a scale on some environments with some agents."""
    envs, agents = set(envs), set(agents)
    jobs = []
    for part in SCALES[scale]:
        chosen_envs = tuple(env for env in part.envs if env in envs)
        chosen_agents = tuple(agent for agent in part.agents if agent in agents)
        if not chosen_envs or not chosen_agents:
            continue
        sweep = Sweep(
            env=chosen_envs,
            agent=chosen_agents,
            preset=(part.preset,),
            seeds=part.seeds,
            fields={"steps": part.steps, **part.fields},
        )
        # Jobs that several figures need must be the same, whatever else was asked for.
        jobs += sweep.jobs(cores=1)
    return jobs
