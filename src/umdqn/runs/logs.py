"""Logging to TensorBoard and Weights & Biases, besides a run's own files."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from umdqn.errors import UmdqnError, one_line, unknown
from umdqn.extras import missing
from umdqn.runs.callbacks import Callback
from umdqn.runs.config import Config
from umdqn.runs.fields import to_dict
from umdqn.runs.files import check_folder, write_json
from umdqn.runs.schemas import WandbId, read_unsealed


def _scalars(record: dict[str, Any]) -> dict[str, float]:
    """Return the numbers of a line of metrics, without step and seed."""
    return {
        name: value
        for name, value in record.items()
        if name not in ("step", "seed") and value is not None
    }


class TensorBoard(Callback):
    """Writes event files to `tensorboard/` under the run, one series per seed."""

    def __init__(self) -> None:
        self._module = _needed("tensorboardX", "tensorboard")
        self._writers: dict[int, Any] = {}

    def on_start(self, path: Path, config: Config, step: int) -> None:
        check_folder(path / "tensorboard")
        for seed in config.all_seeds:
            # A resumed run logs again what came after its checkpoint.
            self._writers[seed] = self._module.SummaryWriter(
                str(path / "tensorboard" / f"seed-{seed}"), purge_step=step + 1
            )

    def on_evaluation(self, step: int, records: Sequence[dict[str, Any]]) -> None:
        for record in records:
            for name, value in _scalars(record).items():
                self._writers[record["seed"]].add_scalar(name, value, step)

    def on_checkpoint(self, step: int, path: Path) -> None:
        for writer in self._writers.values():
            writer.flush()

    def on_end(self, status: str) -> None:
        for writer in self._writers.values():
            writer.close()


class WeightsAndBiases(Callback):
    """Logs to the project `umdqn` at Weights & Biases.

    `WANDB_MODE=offline` logs to `wandb/` under the run; wandb's other variables work as usual.
    """

    def __init__(self) -> None:
        self._module = _needed("wandb", "wandb")
        self._run: Any = None

    def on_start(self, path: Path, config: Config, step: int) -> None:
        check_folder(path / "wandb")
        try:
            self._run = self._module.init(
                project="umdqn",
                id=_identity(path),
                name=path.name,
                dir=str(path),
                config=to_dict(config),
                resume="allow",
                settings=self._module.Settings(silent=True, console="off"),
            )
        except Exception as error:
            raise UmdqnError(
                f"log wandb: {one_line(error)} "
                "(log in with `wandb login`, or set WANDB_MODE=offline)"
            ) from error

    def on_evaluation(self, step: int, records: Sequence[dict[str, Any]]) -> None:
        values = {
            f"{name}/seed-{record['seed']}": value
            for record in records
            for name, value in _scalars(record).items()
        }
        self._run.log(values, step=step)

    def on_end(self, status: str) -> None:
        if self._run is not None:
            self._run.finish(exit_code=0 if status in ("finished", "stopped") else 1)


def _identity(run: Path) -> str:
    """Return the id of a run at Weights & Biases, the same when the run is resumed."""
    path = run / "wandb.json"
    if not path.exists():
        write_json(path, {"id": secrets.token_hex(8)})
    return read_unsealed(path, WandbId)["id"]


LOGS: dict[str, type[Callback]] = {"tensorboard": TensorBoard, "wandb": WeightsAndBiases}
"""Logs by name."""


def loggers(names: Sequence[str]) -> list[Callback]:
    """Return the callbacks of the logs with these names."""
    for name in names:
        if name not in LOGS:
            raise unknown("log", name, LOGS)
    return [LOGS[name]() for name in dict.fromkeys(names)]


def _needed(module: str, extra: str) -> ModuleType:
    try:
        return import_module(module)
    except ImportError:
        raise missing(f"log {extra}", extra) from None
