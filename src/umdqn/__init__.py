"""Distributional reinforcement learning with continuous, valid laws of the return.

import umdqn
run = umdqn.train("grid-world", "umdqn-c", preset="tuned", steps=20_000)
law = run.law([2, 6])[0]
law.mean, law.cdf(0.5), law.quantile(0.05), law.cvar(0.1)
"""

from umdqn.agents import ALGORITHMS
from umdqn.envs import CATALOGUE
from umdqn.laws import Law
from umdqn.runs import Callback, Config, Run, configure, load, resume, train
from umdqn.types import Domain, UmdqnError

__version__ = "0.1.0"

__all__ = [
    "ALGORITHMS",
    "CATALOGUE",
    "Callback",
    "Config",
    "Domain",
    "Law",
    "Run",
    "UmdqnError",
    "configure",
    "load",
    "resume",
    "train",
]
