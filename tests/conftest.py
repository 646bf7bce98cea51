"""Shared set-up: two CPU devices as on any small machine, shapes checked, few compiled programs."""

from jaxtyping import install_import_hook

with install_import_hook("umdqn", "beartype.beartype"):
    import umdqn  # noqa: F401

from pathlib import Path

import jax
import pytest

from umdqn.loops import use_all_cores
from umdqn.runs import Run, configure, train_config

use_all_cores()
jax.config.update("jax_compilation_cache_dir", str(Path(__file__).parents[1] / ".pytest_cache/jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)

_SMALL = {
    "steps": 3_000,
    "replay.warmup": 1_000,
    "seeds": 2,
    "evaluation.every": 1_000,
    "checkpoint_every": 2_000,
}


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A short run of UMDQN-C, for everything that reads runs."""
    return train_config(configure(overrides=_SMALL), tmp_path_factory.mktemp("runs") / "small")
