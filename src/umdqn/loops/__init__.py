"""Loops: training and evaluation programs, and how seeds share a machine."""

from umdqn.loops.compiled import CompiledLoop, LoopState, Progress
from umdqn.loops.evaluation import Returns, evaluate
from umdqn.loops.lanes import Lanes, available_cores, use_all_cores

__all__ = [
    "CompiledLoop",
    "Lanes",
    "LoopState",
    "Progress",
    "Returns",
    "available_cores",
    "evaluate",
    "use_all_cores",
]
