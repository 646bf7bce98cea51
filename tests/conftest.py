"""Shared set-up: shapes checked at run time, few compiled programs, one short run for readers."""

import gc
import importlib
import os
import pkgutil
import resource

from jaxtyping import install_import_hook

with install_import_hook("umdqn", "beartype.beartype"):
    import umdqn

    # The package imports lazily; the hook checks what is imported while it is installed.
    for module in pkgutil.walk_packages(umdqn.__path__, "umdqn."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)

from pathlib import Path

import jax
import pytest

# The key that signs runs is made here, not in the home directory.
os.environ["XDG_STATE_HOME"] = str(Path(__file__).parents[1] / ".pytest_cache/state")

from attacks import attack, counted, save
from umdqn.loops.machine import return_freed_memory, use_all_cores
from umdqn.runs.configure import configure
from umdqn.runs.run import Run
from umdqn.runs.start import train_config

use_all_cores()
jax.config.update("jax_compilation_cache_dir", str(Path(__file__).parents[1] / ".pytest_cache/jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)

_SMALL = {
    "steps": 3_000,
    "replay.warmup": 1_000,
    "seeds": 2,
    "evaluation.every": 1_000,
    "checkpoint_every": 2_000,
}


# Bytes of a test process above which it lets its programs go.
_MUCH = 1_250_000_000


def _resident() -> int:
    """Bytes that this process holds; 0 where the system does not tell."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * resource.getpagesize() if status.exists() else 0


__all__ = ["attack"]


@pytest.fixture(autouse=True)
def same_cores():
    """Give this process its cores back: jobs of sweeps that run in it bind it to one."""
    if not hasattr(os, "sched_getaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, before)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--attacks", type=Path, help="add the counts of attacks to this JSON file")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that count attacks, for `make torture`."""
    for item in items:
        if "attack" in getattr(item, "fixturenames", ()):
            item.add_marker("attack")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the counts of attacks, and write them to the file of `--attacks`."""
    outcomes = ("passed", "failed")
    found = counted([one for name in outcomes for one in terminalreporter.getreports(name)])
    for test, (name, trials, failures) in found.items():
        terminalreporter.line(f"{name}: {trials:,} trials, {failures} failures ({test})")
    path = terminalreporter.config.getoption("--attacks")
    if path is not None and found:
        save(path, found)


@pytest.fixture(autouse=True)
def small_processes():
    """Tests compile many small programs, which JAX would keep to the end."""
    yield
    if _resident() > _MUCH:
        jax.clear_caches()
        gc.collect()
        return_freed_memory()


@pytest.fixture(scope="session")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A short run of UMDQN-C, for everything that reads runs."""
    return train_config(configure(overrides=_SMALL), tmp_path_factory.mktemp("runs") / "small")
