"""Loops: training and evaluation programs, and how seeds share a machine."""

from umdqn.loops.compiled import CompiledLoop, LoopState, Progress
from umdqn.loops.evaluation import Returns, evaluate, evaluate_hosted
from umdqn.loops.host import HostLanes, HostLoop
from umdqn.loops.lanes import Lanes
from umdqn.loops.machine import (
    available_cores,
    keep_compiled_programs,
    peak_memory,
    use_all_cores,
)
from umdqn.loops.memory import FrameMemory, Memory, PairMemory, make_memory, needed_bytes
from umdqn.loops.snapshot import Restored, Snapshot, from_named, named_agents, named_leaves

__all__ = [
    "CompiledLoop",
    "FrameMemory",
    "HostLanes",
    "HostLoop",
    "Lanes",
    "LoopState",
    "Memory",
    "PairMemory",
    "Progress",
    "Restored",
    "Returns",
    "Snapshot",
    "available_cores",
    "evaluate",
    "evaluate_hosted",
    "from_named",
    "keep_compiled_programs",
    "make_memory",
    "named_agents",
    "named_leaves",
    "needed_bytes",
    "peak_memory",
    "use_all_cores",
]
