"""Compiled programs, kept by the value of what they are made for.

The same configuration compiles once per process, however often it is trained. Only the programs of
the latest configurations are kept: a process that trains hundreds of them stays small.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

KEPT = 6
"""Configurations whose programs are kept, for each kind of program."""


def kept_programs(make: Callable[P, T]) -> Callable[P, T]:
    """Keep what a function of hashable arguments returns, for the latest `KEPT` arguments."""
    return lru_cache(maxsize=KEPT)(make)  # type: ignore[return-value]
