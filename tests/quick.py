"""Which cases `make test` runs; `make test-slow` runs the others."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def quick(cases: Iterable[Any], chosen: Collection[Any]) -> list[Any]:
    """Return all cases, with those that were not chosen marked as slow."""
    cases = list(cases)
    assert all(case in cases for case in chosen)
    return [
        case
        if case in chosen
        else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
        for case in cases
    ]
