"""How true are the laws, environment by environment and agent by agent? The jobs of this study."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from umdqn.analysis.reports import accuracy_report
from umdqn.errors import check_count, unknown
from umdqn.runs.config import Config
from umdqn.runs.configure import configure
from umdqn.runs.policy_law import configure_law
from umdqn.runs.run import Run
from umdqn.studies.measured import MeasuredStudy, Result, merged_seeds
from umdqn.studies.study import Tell
from umdqn.studies.truth.policies import DISCOUNT
from umdqn.sweeps.plan import Job

AGENTS = ("umdqn-kl", "umdqn-c", "umdqn-w", "cdqn", "qr-dqn", "iqn", "fqf")
POLICIES = {
    "FrozenLake8x8-v1": "FROZEN_LAKE",
    "CliffWalkingSlippery-v1": "CLIFF_WALKING",
    "inventory": "INVENTORY",
    "random-walk": "RANDOM_WALK",
}
"""Environments, and the names of their policies in `policies.py`."""
SECTIONS = {
    "evaluation": tuple(POLICIES),
    "control": ("grid-world", *POLICIES),
}
"""Environments by section: laws of a given policy, and laws of the policy that is learned."""

# Episodes whose returns are compared with laws.
_EPISODES = 500


class TruthStudy(MeasuredStudy):
    """Laws against exact ones, at the default settings. Sections and seeds can be added later."""

    def __init__(
        self,
        out: Path,
        seeds: int = 5,
        steps: int | None = None,
        only: Sequence[str] = (),
        envs: Sequence[str] = (),
        agents: Sequence[str] = (),
    ):
        check_count("seeds", seeds)
        check_count("steps", 1 if steps is None else steps)
        self.out, self.seeds, self.steps = out, seeds, steps
        self.only = _chosen("section", only, SECTIONS)
        self.envs = _chosen("environment of the study", envs, SECTIONS["control"])
        self.agents = _chosen("agent of the study", agents, AGENTS)

    @property
    def kind(self) -> str:
        return "study of truth"

    @property
    def jobs(self) -> list[Job]:
        return [
            job
            for (section, env, agent), job in self._jobs.items()
            if section in self.only and env in self.envs and agent in self.agents
        ]

    @cached_property
    def _jobs(self) -> dict[tuple[str, str, str], Job]:
        """All jobs, by section, environment and agent."""
        return {
            (section, env, agent): self._job(section, env, agent)
            for section, envs in SECTIONS.items()
            for env in envs
            for agent in AGENTS
        }

    def _job(self, section: str, env: str, agent: str) -> Job:
        point = {"env": env, "agent": agent, "case": f"{section}-{env}-{agent}"}
        return Job.of(point, self.config(section, env, agent))

    def config(self, section: str, env: str, agent: str) -> Config:
        """Return the configuration of a case: the defaults."""
        fields: dict[str, Any] = {"seeds": self.seeds}
        fields |= {} if self.steps is None else {"steps": self.steps}
        if env in POLICIES:
            fields["discount"] = DISCOUNT
        if section == "control":
            return configure(env, agent, overrides=fields)
        policy = f"umdqn.studies.truth.policies:{POLICIES[env]}"
        return configure_law(policy, env, agent, overrides=fields)

    def measure(self, run: Run) -> Result:
        accuracy = accuracy_report(run)["seeds"]
        calibration = run.calibration(_EPISODES)["seeds"]
        seeds = {
            seed: found
            | {
                "coverage_90": calibration[seed]["coverage"]["0.9"],
                "crps_skill": calibration[seed]["crps_skill"],
                "realised_std": calibration[seed]["realised_std"],
            }
            for seed, found in accuracy.items()
        }
        return {"step": run.step, "seeds": seeds}

    def results(self, tell: Tell = lambda line: None) -> dict[str, dict[str, dict[str, Result]]]:
        """Return what was measured of finished jobs, by section, environment and agent."""
        by_case: dict[str, list[Result]] = {}
        for job in self.found(list(self._jobs.values())):
            by_case.setdefault(job.point["case"], []).append(self.result(job, tell))
        found: dict[str, dict[str, dict[str, Result]]] = {section: {} for section in SECTIONS}
        for (section, env, agent), job in self._jobs.items():
            parts = by_case.get(job.point["case"])
            if parts:
                whole = parts[0] | {"seeds": merged_seeds(parts)}
                found[section].setdefault(env, {})[agent] = whole
        return found

    def write(self, tell: Tell = lambda line: None) -> list[Path]:
        from umdqn.studies.truth.report import write_report

        return write_report(self, tell)


def _chosen(kind: str, names: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """Return the names, in their usual order; all if none are given."""
    for name in names:
        if name not in known:
            raise unknown(kind, name, known)
    return tuple(name for name in known if name in (names or known))
