"""From the field `policy` of a configuration to the fixed policy that an agent follows.

A name is that of a checkpoint of a run, `module:attribute`, or that of an object in this process.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from umdqn.agents.agent import Agent
from umdqn.agents.fixed import FixedPolicy
from umdqn.agents.policies import PythonPolicy, TablePolicy
from umdqn.envs.entry import Entry
from umdqn.envs.tabular import FiniteEnvironment
from umdqn.errors import InvalidField, UmdqnError, check, notice
from umdqn.parts.objects import keep, recall
from umdqn.runs.checkpoints import Checkpoints
from umdqn.runs.manifests import read_manifest
from umdqn.runs.run_name import RunName
from umdqn.runs.trust import trust_run

_KIND = "policy"


def policy_name(policy: Any) -> str:
    """Return the name of a policy, as configurations hold it.

    A run is given as its directory, as `DIRECTORY@STEP`, or as what `umdqn.load` returns; others by
    `module:attribute`, or as objects.
    """
    if _is_run(policy):
        found = RunName.read(str(policy)) or _newest(Path(policy))
        read_manifest(found.path)
        return str(found._replace(path=found.path.resolve()))
    if isinstance(policy, str):
        recall(_KIND, policy)
        return policy
    if isinstance(getattr(policy, "agent", None), Agent) and hasattr(policy, "steps"):
        return str(RunName(policy.path.resolve(), policy.steps[policy.seeds[0]]))
    return keep(_KIND, policy)


def trust_policy(policy: Any) -> None:
    """Allow what a run names that is given as a policy."""
    if _is_run(policy):
        found = RunName.read(str(policy))
        trust_run(Path(policy) if found is None else found.path)


def _is_run(policy: Any) -> bool:
    return isinstance(policy, Path) or (isinstance(policy, str) and ":" not in policy)


def _newest(path: Path) -> RunName:
    *_, manifest = read_manifest(path)
    checkpoints = Checkpoints(path)
    steps, missing = checkpoints.steps(), checkpoints.missing(manifest["step"])
    if not steps:
        raise UmdqnError(f"{path} has no checkpoint: its policy is unknown")
    if missing is not None:
        notice(f"{missing}; the policy of step {steps[-1]:,} is followed")
    return RunName(path, steps[-1])


def check_chain(run: RunName) -> None:
    """Raise if policies that follow policies lead back to a run."""
    seen: list[Path] = []
    following: RunName | None = run
    while following is not None:
        path = following.path.resolve()
        if path in seen:
            chain = ", ".join(map(str, seen))
            raise UmdqnError(f"policies follow each other in a circle: {chain}")
        seen.append(path)
        config, *_ = read_manifest(path)
        following = RunName.read(config.policy)


def runs_compiled(name: str, entry: Entry) -> bool:
    """Return whether a policy can run inside of compiled programs; "" is the agent's own.

    On a finite MDP any policy is a table.
    """
    return not name or RunName.read(name) is not None or _finite(entry) is not None


def given_policy(name: str, entry: Entry) -> FixedPolicy:
    """Return a policy that is not a run's; on a finite MDP it is asked once in every state."""
    given, finite, spec = recall(_KIND, name), _finite(entry), entry.spec
    if isinstance(given, np.ndarray | list | tuple):
        count = None if finite is None else finite.mdp.num_states
        shape = np.shape(given)
        check(shape == (count,), "policy", shape, "one action per state, of a finite MDP only")
        table = np.asarray(given)
        inside = bool(np.all((table >= 0) & (table < spec.num_actions)))
        whole = table.dtype.kind in "iu" and inside
        check(whole, "policy", table.tolist(), f"actions from 0 to {spec.num_actions - 1}")
        return _table(finite, table)
    python = PythonPolicy(name, given, spec)
    if finite is None:
        return python
    actions = np.zeros(finite.mdp.num_states, np.int64)
    visited = finite.mdp.visited
    actions[visited] = python.choose(finite.mdp.observations[visited])
    return _table(finite, actions)


def _finite(entry: Entry) -> FiniteEnvironment | None:
    return entry.compiled if isinstance(entry.compiled, FiniteEnvironment) else None


def _table(env: FiniteEnvironment | None, actions: np.ndarray) -> TablePolicy:
    assert env is not None
    features = env.mdp.features
    rows = None if features is None else tuple(map(tuple, features.tolist()))
    return TablePolicy(tuple(actions.tolist()), rows)


def check_explore(explore: Any) -> float:
    """Return a probability of random actions; raises if it is none."""
    try:
        number = float(explore)
    except (TypeError, ValueError, OverflowError):
        raise InvalidField("explore", explore, "from 0 to 1") from None
    check(0 <= number <= 1, "explore", explore, "from 0 to 1")
    return number
