"""Runs: configuration, presets, directories, training."""

from umdqn.runs.callbacks import Callback, Report
from umdqn.runs.config import Config, configure
from umdqn.runs.directory import RunDirectory
from umdqn.runs.logs import LOGS, loggers
from umdqn.runs.presets import PRESETS
from umdqn.runs.run import Run, load
from umdqn.runs.trainer import Interrupted
from umdqn.runs.training import resume, train, train_config, train_once

__all__ = [
    "LOGS",
    "PRESETS",
    "Callback",
    "Config",
    "Interrupted",
    "Report",
    "Run",
    "RunDirectory",
    "configure",
    "load",
    "loggers",
    "resume",
    "train",
    "train_config",
    "train_once",
]
