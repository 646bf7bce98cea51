"""Counts of attacks: how many trials a test made, for the table of docs/reliability.md.

A test takes the fixture `attack`, names its attack, and enters `attack.trial()` for each trial. The
test stops at the first trial that fails, so that a failed test has one failure.
"""

import contextlib
import faulthandler
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

# Seconds after which a trial counts as a hang: the process ends with its stacks.
_PATIENCE = 600


class Attack:
    """Counts the trials of one test."""

    def __init__(self, node: pytest.Item):
        self._node, self._name, self.trials = node, "", 0

    def __call__(self, name: str) -> "Attack":
        """Name the attack, as the table shows it."""
        self._name = name
        return self

    @contextlib.contextmanager
    def trial(self, patience: float = _PATIENCE) -> Iterator[None]:
        """Count a trial, which may take so many seconds."""
        self.trials += 1
        self._node.user_properties[:] = [("attack", (self._name, self.trials))]
        faulthandler.dump_traceback_later(patience, exit=True)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def attack(request: pytest.FixtureRequest) -> Attack:
    """What counts the trials of this test."""
    return Attack(request.node)


def counted(reports: list[pytest.TestReport]) -> dict[str, tuple[str, int, int]]:
    """Return attack, trials and failures of every test that counted any."""
    found = {}
    for report in reports:
        for kind, value in report.user_properties:
            if kind == "attack" and report.when == "call":
                found[report.nodeid] = (*value, int(report.failed))
    return found


def save(path: Path, found: dict[str, tuple[str, int, int]]) -> None:
    """Add what a run counted to what earlier runs of other tests did."""
    before = json.loads(path.read_text()) if path.exists() else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(before | found, indent=2, sort_keys=True) + "\n")
