"""Runs: configuration, presets, directories, training."""

from umdqn.runs.config import Config, configure
from umdqn.runs.directory import RunDirectory
from umdqn.runs.presets import PRESETS
from umdqn.runs.run import Run, load
from umdqn.runs.trainer import Interrupted, Report, Watcher
from umdqn.runs.training import resume, train, train_config

__all__ = [
    "PRESETS",
    "Config",
    "Interrupted",
    "Report",
    "Run",
    "RunDirectory",
    "Watcher",
    "configure",
    "load",
    "resume",
    "train",
    "train_config",
]
