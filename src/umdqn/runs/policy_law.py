"""The law of a policy that is given: learned, looked at, and compared with realised returns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from umdqn.calibration.summary import Summary
from umdqn.envs.catalogue import named
from umdqn.errors import UmdqnError, check_count
from umdqn.laws.law import Law
from umdqn.loops.episodes import Returns
from umdqn.loops.machine import use_all_cores
from umdqn.runs.build import environment
from umdqn.runs.callbacks import Callback
from umdqn.runs.config import Config
from umdqn.runs.configure import configure
from umdqn.runs.fields import flattened
from umdqn.runs.policy_names import check_explore, policy_name, trust_policy
from umdqn.runs.run import Run, load
from umdqn.runs.start import train_config

EXPLORE = 0.1
"""Default probability of a random action while a policy is followed."""
_FRACTIONS = (np.arange(200) + 0.5) / 200


class PolicyLaw:
    """The law of the return of a fixed policy, in every state."""

    def __init__(self, run: Run):
        if not run.config.policy:
            raise UmdqnError(f"{run.path} follows no given policy: umdqn.learn_law makes such runs")
        self.run = run
        """The run that learned it."""

    def __repr__(self) -> str:
        trust = f"; laws: {self.trust}" if self.trust else ""
        return f"PolicyLaw({self.run.config.policy!r} on {self.run.config.env}{trust})"

    @property
    def path(self) -> Path:
        """The run's directory."""
        return self.run.path

    @property
    def trust(self) -> Summary | None:
        """What calibration found; None if never done."""
        return self.run.trust

    def law(self, observation: Any, seed: int | None = None) -> Law:
        """Return the law of following the policy from an observation, or from each of a batch."""
        return self.run.followed(observation, seed)

    def laws(self, observation: Any, seed: int | None = None) -> Law:
        """Return the laws of taking each action first, and of following the policy then."""
        return self.run.laws(observation, seed)

    def calibration(self, episodes: int = 1_000) -> dict[str, Any]:
        """Compare laws with the returns of new episodes of the policy."""
        return self.run.calibration(episodes)

    def evaluate(self, episodes: int) -> dict[int, Returns]:
        """Play new episodes of the policy and return their returns, by seed."""
        return self.run.evaluate(episodes)

    def at_start(self, starts: int = 100) -> dict[str, float]:
        """Return mean, deviation, quantiles and worst tenth of the law over first states.

        First states are drawn anew; with several, the law is the mixture of theirs. All numbers are
        of discounted returns, of the first seed.
        """
        check_count("starts", starts)
        laws = self.law(first_observations(self.run.config, starts))
        means, variances = np.asarray(laws.mean), np.asarray(laws.variance)
        pooled = np.sort(np.asarray(laws.quantile(_FRACTIONS)).ravel())
        low, middle, high = np.quantile(pooled, [0.05, 0.5, 0.95]).tolist()
        return {
            "mean": float(means.mean()),
            "std": float(np.sqrt(np.maximum(variances.mean(), 0.0) + means.var())),
            "quantile_05": low,
            "median": middle,
            "quantile_95": high,
            "worst_tenth": float(pooled[: len(pooled) // 10].mean()),
        }


def first_observations(config: Config, count: int) -> np.ndarray:
    """Return what is seen at the beginning of new episodes."""
    entry, env = environment(config), environment(config).compiled
    if env is not None:
        keys = jax.random.split(jax.random.key(config.seed), count)
        return np.asarray(jax.vmap(lambda key: env.observe(env.reset(key)))(keys))
    hosted = entry.hosted(1)
    try:
        return np.stack([hosted.reset(config.seed + number)[0] for number in range(count)])
    finally:
        hosted.close()


def configure_law(
    policy: Any,
    env: Any,
    agent: str = "umdqn-c",
    preset: str = "tuned",
    explore: Any = EXPLORE,
    overrides: dict[str, Any] | None = None,
) -> Config:
    """Return the configuration that learns the law of a policy.

    Actions are the policy's, and random ones with probability `explore`, from the first step to the
    last. An exploration rule among the overrides takes the place of `explore`.
    """
    fields = {"evaluation.epsilon": 0.0, "policy": policy_name(policy)}
    number = check_explore(explore)
    if not any(path == "exploration" for path in flattened(overrides or {})):
        fields |= {
            "exploration": "epsilon-greedy",
            "exploration.start": number,
            "exploration.end": number,
            "exploration.repeat": 1,
        }
    return configure(named(env), agent, preset, fields | (overrides or {}))


def learn_law(
    policy: Any,
    env: Any,
    agent: str = "umdqn-c",
    preset: str = "tuned",
    *,
    steps: int | None = None,
    seeds: int | None = None,
    explore: float = EXPLORE,
    out: str | Path | None = None,
    callbacks: Callback | Sequence[Callback] = (),
    progress: bool | None = None,
    trust: bool = False,
    **overrides: Any,
) -> PolicyLaw:
    """Learn the law of the return of a policy that stays as it is.

    The policy is a function from an observation to an action, anything with Stable-Baselines3's
    `predict`, a run or its directory, or an array of actions by state of a finite MDP. It sees what
    the environment gives: the number of the state where the space of observations is `Discrete`.
    Other actions are taken with probability `explore`, so that their laws are learned, too.
    `trust` allows such a run to import the code that it names, if you did not make it on this
    machine. Everything else is as in `umdqn.train`.
    """
    use_all_cores()
    if trust:
        trust_policy(policy)
    given = {"steps": steps, "seeds": seeds}
    overrides |= {name: value for name, value in given.items() if value is not None}
    config = configure_law(policy, env, agent, preset, explore, overrides)
    run = train_config(config, Path(out) if out is not None else None, callbacks, progress)
    return PolicyLaw(run)


def load_law(path: str | Path, trust: bool = False) -> PolicyLaw:
    """Load what `learn_law` has learned in a directory; `trust` is as in `umdqn.load`."""
    return PolicyLaw(load(path, trust=trust))
