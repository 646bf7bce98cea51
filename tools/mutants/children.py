"""Test processes, forked from a worker that has imported everything, in a copy of the tree.

Importing JAX and checking the types of the whole package takes longer than most tests. A worker
does it once per copy; a change within a function is then put into the imported module, and only
what changes a module's own statements is imported again.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
STATE = ROOT / ".mutants"
"""Copies, measurements and results."""
PASSED, FAILED, TIMEOUT = 0, 1, -1
_FOR_TESTS = ("pytest", "hypothesis", "rlax", "pandas", "scipy.optimize", "starlette.testclient")
_OPTIONS = ("-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "-p", "no:xdist")
_MARKS = ("-m", "not slow and not torture", "--hypothesis-seed=0")
# A mutant may ask for any amount of memory, and may wait for something that never comes.
_MOST_BYTES = 6 * 2**30
_WAITING = 10


class Ended(NamedTuple):
    """How a test process ended."""

    code: int
    """That of pytest, or `TIMEOUT`."""
    seconds: float
    """Of processor time."""


def tree(name: str) -> Path:
    """Return a fresh copy of the work tree, with compiled programs of an earlier one."""
    copy = STATE / name
    kept = copy / ".pytest_cache"
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    for old in copy.iterdir() if copy.exists() else ():
        if old != kept:
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    for path in filter(lambda path: (ROOT / path).is_file(), listed):
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, copy / path)
    return copy


def worker(copy: Path, work: Callable[[], None]) -> int:
    """Start a process that imports what a copy has, then works; return its number."""

    def child() -> int:
        _enter(copy)
        work()
        return PASSED

    return _forked(child)


def run(
    copy: Path,
    tests: list[str],
    seconds: float,
    plugins: tuple[Any, ...] = (),
    prepare: Callable[[], None] = lambda: None,
) -> Ended:
    """Run tests in a child of a worker, with a limit of processor time."""

    def child() -> int:
        os.setsid()
        limit = int(seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, _MOST_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        out = os.open(copy / "output.txt", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(out, 1)
        os.dup2(out, 2)
        prepare()
        import jax
        import pytest

        # Tests compile many small programs; those that a mutant leaves alone are read.
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        return int(pytest.main([*_OPTIONS, *_MARKS, *tests], plugins=list(plugins)))

    return _result(_forked(child), time.monotonic() + _WAITING * seconds)


def swap(name: str, path: Path, old: bytes, new: bytes) -> bool:
    """Change the code of an imported module's functions; return whether it could be done."""
    compiled = sys.modules[name].__spec__.loader.source_to_code  # type: ignore[union-attr]
    before, after = ([*_codes(compiled(source, str(path)))] for source in (old, new))
    places = [(code.co_qualname, code.co_firstlineno) for code in before]
    changed = dict(zip(places, after, strict=True))
    found = False
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename == str(path):
            code = function.__code__
            fresh = changed.get((code.co_qualname, code.co_firstlineno))
            if fresh is None or fresh.co_freevars != code.co_freevars:
                return False
            function.__code__ = fresh
            found = True
    return found


def import_again(copy: Path) -> None:
    """Forget the package and the helpers of tests, and import them anew."""
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(copy)):
            del sys.modules[name]
    importlib.import_module("conftest")


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the functions of a module and of its classes, but not those inside of functions."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            # Bodies of classes have no variables that are faster than a dictionary's.
            if each.co_flags & 1:
                yield each
            else:
                yield from _codes(each)


def _enter(copy: Path) -> None:
    os.chdir(copy)
    os.environ["PYTHONPATH"] = str(copy / "src")
    sys.path[:0] = [str(copy / "src"), str(copy / "tests")]
    importlib.import_module("conftest")
    for name in _FOR_TESTS:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def _forked(work: Callable[[], int]) -> int:
    """Do work in a child process that ends with its result, or with `FAILED`; return its number."""
    pid = os.fork()
    if pid:
        return pid
    code = FAILED
    try:
        atexit._clear()
        code = work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _result(pid: int, deadline: float) -> Ended:
    """Wait for a child with its own process group, and end it if it is late."""
    done = 0
    while not done:
        late = time.monotonic() > deadline
        if late:
            os.killpg(pid, signal.SIGKILL)
        done, status, usage = os.wait4(pid, 0 if late else os.WNOHANG)
        time.sleep(0 if done else 0.02)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # what tests left behind
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGKILL, signal.SIGXCPU)
    # A crash of the interpreter is a failed test.
    code = TIMEOUT if killed else FAILED if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    return Ended(code, usage.ru_utime + usage.ru_stime)
