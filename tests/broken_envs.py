"""Environments that break their contract, each in a way of its own, from some step on."""

from __future__ import annotations

import decimal
import fractions
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

Answer = tuple[Any, ...]
TRAINS = None
"""What is expected of an environment that an agent can learn from all the same."""


class Broken(gymnasium.Env):
    """Answers soundly until step `at` of its first episode, then as `fault` says."""

    observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = spaces.Discrete(2)
    limit = 15_000

    def __init__(self, fault: Callable[[Answer], Any], at: int):
        self.fault, self.at = fault, at

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.taken = 0
        first = (np.zeros(2, np.float32), {})
        return self.fault(first) if self.at == 0 else first

    def step(self, action: Any) -> Any:
        self.taken += 1
        seen = np.array([np.sin(self.taken), float(action)], np.float32)
        answer = (seen, float(action), self.taken == self.limit, False, {})
        return self.fault(answer) if self.taken >= self.at else answer


class Kind(NamedTuple):
    """A way to break the contract, and what follows."""

    fault: Callable[[Answer], Any]
    expected: str | type[BaseException] | None
    """Part of the line that says what is wrong, an exception of the environment's, or TRAINS."""


def _at(index: int, value: Any) -> Callable[[Answer], Answer]:
    return lambda answer: (*answer[:index], value, *answer[index + 1 :])


def _seen(change: Callable[[np.ndarray], Any]) -> Callable[[Answer], Answer]:
    return lambda answer: (change(answer[0]), *answer[1:])


def _raises(error: BaseException) -> Callable[[Answer], Any]:
    def fault(answer: Answer) -> Any:
        raise error

    return fault


class Mute(Exception):
    """Cannot even say what is wrong."""

    def __str__(self) -> str:
        raise ZeroDivisionError


class Stop(BaseException):
    """Not an `Exception`, as those that stop a program."""


class NoFloat:
    """A number that fails when it is asked for its value."""

    def __float__(self) -> float:
        raise ZeroDivisionError

    def __repr__(self) -> str:
        raise ZeroDivisionError


SHAPE = "observation must be float32 of shape"
OBSERVATIONS = {
    "none": Kind(_at(0, None), SHAPE),
    "a list": Kind(_at(0, [0.0, 0.0]), SHAPE),
    "a number": Kind(_at(0, 0.5), SHAPE),
    "text": Kind(_at(0, "seen"), SHAPE),
    "bytes": Kind(_at(0, bytes(8)), SHAPE),
    "a dict": Kind(_at(0, {"seen": 1}), SHAPE),
    "a tuple": Kind(_at(0, (0.0, 0.0)), SHAPE),
    "longer": Kind(_seen(lambda seen: np.zeros(3, np.float32)), SHAPE),
    "huge": Kind(_seen(lambda seen: np.zeros(10**7, np.float32)), SHAPE),
    "empty": Kind(_seen(lambda seen: seen[:0]), SHAPE),
    "a column": Kind(_seen(lambda seen: seen[:, None]), SHAPE),
    "a scalar array": Kind(_seen(lambda seen: seen[0]), SHAPE),
    "doubles": Kind(_seen(lambda seen: seen.astype(np.float64)), SHAPE),
    "whole": Kind(_seen(lambda seen: seen.astype(np.int32)), SHAPE),
    "complex": Kind(_seen(lambda seen: seen.astype(np.complex64)), SHAPE),
    "objects": Kind(_seen(lambda seen: seen.astype(object)), SHAPE),
    "swapped bytes": Kind(_seen(lambda seen: seen.astype(">f4")), SHAPE),
    "words": Kind(_seen(lambda seen: seen.astype(str)), SHAPE),
    "fields": Kind(_seen(lambda seen: np.zeros(2, [("a", "f4")])), SHAPE),
    "not a number": Kind(_seen(lambda seen: seen * np.float32("nan")), "finite numbers"),
    "infinite": Kind(_seen(lambda seen: seen + np.float32("inf")), "finite numbers"),
    "too large": Kind(_seen(lambda seen: seen + 5), "must be from -1 to 1"),
    "too small": Kind(_seen(lambda seen: seen - 5), "must be from -1 to 1"),
    "masked": Kind(_seen(lambda seen: np.ma.masked_invalid(seen)), TRAINS),
    "read-only": Kind(_seen(lambda seen: np.broadcast_to(np.float32(0.5), (2,))), TRAINS),
    "reversed": Kind(_seen(lambda seen: seen[::-1]), TRAINS),
}
FINITE = "reward must be a finite number"
REWARDS = {
    "none": Kind(_at(1, None), FINITE),
    "text": Kind(_at(1, "1.5"), FINITE),
    "bytes": Kind(_at(1, b"1"), FINITE),
    "not a number": Kind(_at(1, float("nan")), FINITE),
    "infinite": Kind(_at(1, float("-inf")), FINITE),
    "beyond doubles": Kind(_at(1, 10**400), FINITE),
    "complex": Kind(_at(1, 1j), FINITE),
    "a list": Kind(_at(1, [1.0]), FINITE),
    "a vector": Kind(_at(1, np.zeros(2)), FINITE),
    "a dict": Kind(_at(1, {}), FINITE),
    "a signalling decimal": Kind(_at(1, decimal.Decimal("sNaN")), FINITE),
    "no float": Kind(_at(1, NoFloat()), FINITE),
    "a truth value": Kind(_at(1, True), TRAINS),
    "a fraction": Kind(_at(1, fractions.Fraction(1, 3)), TRAINS),
    "a byte": Kind(_at(1, np.int8(-3)), TRAINS),
}
FLAGS = {
    "none": Kind(_at(2, None), "terminated must be True or False"),
    "one": Kind(_at(2, 1), "terminated must be True or False"),
    "text": Kind(_at(2, "False"), "terminated must be True or False"),
    "an array": Kind(_at(3, np.array(False)), "truncated must be True or False"),
    "a list": Kind(_at(3, []), "truncated must be True or False"),
    "a number": Kind(_at(3, float("nan")), "truncated must be True or False"),
    "NumPy's": Kind(_at(3, np.bool_(True)), TRAINS),
    "both": Kind(lambda answer: (*answer[:2], True, True, {}), TRAINS),
}
FIVE = "step() must be observation, reward, terminated, truncated and info"
ANSWERS = {
    "of four": Kind(lambda answer: answer[:4], FIVE),
    "of six": Kind(lambda answer: (*answer, 0), FIVE),
    "a list": Kind(list, FIVE),
    "none": Kind(lambda answer: None, FIVE),
    "an observation": Kind(lambda answer: answer[0], FIVE),
    "a generator": Kind(lambda answer: (part for part in answer), FIVE),
    "without info": Kind(_at(4, None), TRAINS),
}
RAISED = {
    "an error": Kind(_raises(ValueError("of mine")), "raised ValueError: of mine"),
    "several lines": Kind(_raises(KeyError("a\nb\nc")), "raised KeyError"),
    "escape codes": Kind(_raises(RuntimeError("\x1b[2J\ud800")), r"raised RuntimeError: \x1b[2J"),
    "no memory": Kind(_raises(MemoryError()), "raised MemoryError"),
    "a wrong check": Kind(_raises(AssertionError()), "raised AssertionError"),
    "the end": Kind(_raises(StopIteration()), "raised StopIteration"),
    "too deep": Kind(_raises(RecursionError("deep")), "raised RecursionError: deep"),
    "a pipe": Kind(_raises(BrokenPipeError()), "raised BrokenPipeError"),
    "nothing to say": Kind(_raises(Mute()), "raised Mute"),
    "an exit": Kind(_raises(SystemExit(3)), SystemExit),
    "a stop": Kind(_raises(Stop()), Stop),
}
KINDS = {
    f"{group}: {name}": kind
    for group, kinds in (
        ("observation", OBSERVATIONS),
        ("reward", REWARDS),
        ("flags", FLAGS),
        ("answer", ANSWERS),
        ("raises", RAISED),
    )
    for name, kind in kinds.items()
}
