"""Distributional reinforcement learning with continuous, valid laws of the return.

import umdqn
run = umdqn.train("grid-world", "umdqn-c", preset="tuned", steps=20_000)
law = run.law([2, 6])[0]
law.mean, law.cdf(0.5), law.quantile(0.05), law.cvar(0.1)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from umdqn.agents.algorithms import ALGORITHMS
    from umdqn.analysis.dynamic_programming import exact_laws
    from umdqn.envs.catalogue import CATALOGUE
    from umdqn.envs.finite import FiniteMdp
    from umdqn.errors import UmdqnError
    from umdqn.laws.law import Law
    from umdqn.runs.callbacks import Callback, StopTraining
    from umdqn.runs.config import Config
    from umdqn.runs.configure import configure
    from umdqn.runs.kinds import register
    from umdqn.runs.policy_law import PolicyLaw, learn_law, load_law
    from umdqn.runs.run import Run, load
    from umdqn.runs.start import resume, train
    from umdqn.specs import Domain

__version__ = "0.2.0"

# Importing JAX takes a second: names are imported when they are first used.
_HOMES = {
    "ALGORITHMS": "umdqn.agents.algorithms",
    "CATALOGUE": "umdqn.envs.catalogue",
    "Callback": "umdqn.runs.callbacks",
    "Config": "umdqn.runs.config",
    "Domain": "umdqn.specs",
    "FiniteMdp": "umdqn.envs.finite",
    "Law": "umdqn.laws.law",
    "PolicyLaw": "umdqn.runs.policy_law",
    "Run": "umdqn.runs.run",
    "StopTraining": "umdqn.runs.callbacks",
    "UmdqnError": "umdqn.errors",
    "configure": "umdqn.runs.configure",
    "exact_laws": "umdqn.analysis.dynamic_programming",
    "learn_law": "umdqn.runs.policy_law",
    "load": "umdqn.runs.run",
    "load_law": "umdqn.runs.policy_law",
    "register": "umdqn.runs.kinds",
    "resume": "umdqn.runs.start",
    "train": "umdqn.runs.start",
}

__all__ = [
    "ALGORITHMS",
    "CATALOGUE",
    "Callback",
    "Config",
    "Domain",
    "FiniteMdp",
    "Law",
    "PolicyLaw",
    "Run",
    "StopTraining",
    "UmdqnError",
    "__version__",
    "configure",
    "exact_laws",
    "learn_law",
    "load",
    "load_law",
    "register",
    "resume",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'umdqn' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
