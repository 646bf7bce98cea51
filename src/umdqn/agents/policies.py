"""Kinds of fixed policies: tables of actions, trained agents, and anything that Python can call."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from functools import cached_property
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Shaped

from umdqn.agents.agent import Agent
from umdqn.agents.fixed import FixedPolicy, PolicyFault
from umdqn.agents.state import Learned
from umdqn.errors import UmdqnError, one_line
from umdqn.layouts import decode
from umdqn.specs import EnvSpec


class CompiledPolicy(FixedPolicy):
    """A policy that runs inside of compiled programs."""

    def choose(self, observations: np.ndarray) -> np.ndarray:
        return np.asarray(self._program(observations), np.int64)

    @cached_property
    def _program(self) -> Callable[[Any], Array]:
        return jax.jit(jax.vmap(self.act))


@dataclasses.dataclass(frozen=True)
class TablePolicy(CompiledPolicy):
    """One action per state of a finite MDP."""

    actions: tuple[int, ...]
    features: tuple[tuple[float, ...], ...] | None = None
    """What is seen in each state; None: one-hot vectors."""

    def act(self, observation: Shaped[Array, "..."]) -> Int[Array, ""]:
        if self.features is None:
            state = jnp.argmax(observation)
        else:
            rows = jnp.asarray(self.features, jnp.float32)
            state = jnp.argmin(jnp.sum(jnp.abs(rows - observation), axis=1))
        return jnp.asarray(self.actions, jnp.int32)[state]


@dataclasses.dataclass(frozen=True)
class AgentPolicy(CompiledPolicy):
    """The greedy choice of a trained agent."""

    agent: Agent
    digest: str
    """Hash of `learned`, which is compared in place of the arrays."""
    learned: Learned = dataclasses.field(compare=False, repr=False)

    def act(self, observation: Shaped[Array, "..."]) -> Int[Array, ""]:
        # Loops of compiled programs take no NumPy arrays as constants.
        return self.agent.greedy(jax.tree.map(jnp.asarray, self.learned), observation)


class PythonPolicy(FixedPolicy):
    """A function from an observation to an action, or an object with such a `predict`.

    It gets one observation at a time, as its environment gives it, and returns the environment's
    number of an action. Seeds that train in threads call it one after the other.
    """

    def __init__(self, name: str, given: Any, spec: EnvSpec):
        self.name, self._given, self._spec = name, given, spec
        self._call = _callable(name, given)
        self._lock = threading.Lock()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PythonPolicy) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[Any, ...]:
        return id(self._given), self._spec

    def choose(self, observations: np.ndarray) -> np.ndarray:
        with self._lock:
            return np.array([self._action(seen) for seen in observations], np.int64)

    def act(self, observation: Shaped[Array, "..."]) -> Int[Array, ""]:
        raise AssertionError("a policy in Python runs in the host loop only")

    def _action(self, observation: np.ndarray) -> int:
        # A copy: a policy may write to its argument, and the replay memory must not change.
        shown = decode(self._spec.observation, observation)
        try:
            answer = self._call(shown)
        except Exception as error:
            raise PolicyFault(f"policy {self.name!r} raised {one_line(error)}") from error
        return self._read(answer)

    def _read(self, answer: Any) -> int:
        low = self._spec.first_action
        high = low + self._spec.num_actions - 1
        try:
            found = np.asarray(answer)
        except Exception:
            found = np.array(None)
        if found.shape == () and found.dtype.kind in "iubf" and found == found.round():
            action = int(found)
            if low <= action <= high:
                return action - low
        shape = f" of shape {found.shape}" if found.shape else ""
        text = " ".join(repr(answer).split())[:60]
        raise PolicyFault(
            f"policy {self.name!r} returned {text}{shape}: an action must be a whole number from "
            f"{low} to {high}"
        )


def _callable(name: str, given: Any) -> Callable[[Any], Any]:
    """Return the function from an observation to an action."""
    if isinstance(given, type):
        raise UmdqnError(f"policy {name!r} is a class: pass an instance of it")
    predict = getattr(given, "predict", None)
    if callable(predict):
        return lambda seen: _first(name, predict(seen, deterministic=True))
    if callable(given):
        return given
    raise UmdqnError(
        f"policy {name!r} must be a function from an observation to an action, or have predict, "
        f"not {type(given).__name__}"
    )


def _first(name: str, answer: Any) -> Any:
    """Return the action of what `predict` returned."""
    if isinstance(answer, tuple) and len(answer) == 2:
        return answer[0]
    text = " ".join(repr(answer).split())[:60]
    raise UmdqnError(f"predict of policy {name!r} returned {text}, not a pair (action, state)")


@dataclasses.dataclass(frozen=True)
class AbsentPolicy(FixedPolicy):
    """A policy that this process cannot find; laws of all actions can be read without it."""

    reason: str

    def choose(self, observations: np.ndarray) -> NoReturn:
        raise UmdqnError(self.reason)

    def act(self, observation: Shaped[Array, "..."]) -> NoReturn:
        raise UmdqnError(self.reason)
