"""Finite MDPs: tables of transitions as a value."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from umdqn.errors import UmdqnError, check, check_count

DISCOUNT = 0.99
TIME_LIMIT = 1_000

# How far sums of probabilities may be from 1.
_TOLERANCE = 1e-6
_TABLES = ("probability", "next_state", "reward", "reward_std", "terminated")


@dataclasses.dataclass(frozen=True, eq=False)
class FiniteMdp:
    """A Markov decision process with S states, A actions and K outcomes of every state-action pair.

    Outcome `k` of `(s, a)` has a probability, a next state, the mean and the standard deviation of
    a Gaussian reward, and says whether the episode ends. Arrays are copied, checked, and cannot be
    written. Two MDPs are equal if all of their fields are.
    """

    probability: np.ndarray
    next_state: np.ndarray
    reward: np.ndarray
    reward_std: np.ndarray | float = 0.0
    """Standard deviation of the reward [S, A, K]; one number for all; 0 is deterministic."""
    terminated: np.ndarray | bool = False
    start: np.ndarray | None = None
    """Probability of starting in each state [S]; uniform by default."""
    features: np.ndarray | None = None
    """Observation of each state [S, d]; one-hot vectors by default."""
    name: str = "finite-mdp"
    action_names: tuple[str, ...] = ()
    discount: float = DISCOUNT
    time_limit: int = TIME_LIMIT
    """Steps after which an episode is truncated."""

    def __post_init__(self) -> None:
        probability = _array("probability", self.probability, np.float64)
        check(probability.ndim == 3, "probability", probability.shape, "shape [S, A, K]")
        check(min(probability.shape) > 0, "probability", probability.shape, "no axis of length 0")
        kinds = dict(zip(_TABLES, (float, np.int64, float, float, bool), strict=True))
        for name, kind in kinds.items():
            value = _array(name, getattr(self, name), kind)
            if value.ndim == 0 and name in ("reward_std", "terminated"):
                value = np.full(probability.shape, value)
            shape = f"the shape of probability, {probability.shape}"
            check(value.shape == probability.shape, name, value.shape, shape)
            self._set(name, value)
        states, actions = probability.shape[:2]
        start = np.full(states, 1 / states) if self.start is None else self.start
        self._set("start", _array("start", start, np.float64))
        if self.features is not None:
            features = _array("features", self.features, np.float32)
            good = features.ndim == 2 and len(features) == states and features.shape[1] > 0
            check(good, "features", features.shape, f"shape [{states}, d]: a row per state")
            check(bool(np.isfinite(features).all()), "features", "NaN or infinity", "finite")
            self._set("features", features)
        names = tuple(self.action_names) or tuple(f"action {i}" for i in range(actions))
        check(len(names) == actions, "action_names", names, f"{actions} names")
        object.__setattr__(self, "action_names", names)
        self._check_values()

    def _set(self, name: str, value: np.ndarray) -> None:
        value = np.array(value)
        value.flags.writeable = False
        object.__setattr__(self, name, value)

    def _check_values(self) -> None:
        states = self.num_states
        _check_probabilities("probability", self.probability)
        assert self.start is not None
        check(self.start.shape == (states,), "start", self.start.shape, f"shape ({states},)")
        _check_probabilities("start", self.start)
        wrong = (self.next_state < 0) | (self.next_state >= states)
        if wrong.any():
            where, value = _first(wrong), int(self.next_state[wrong][0])
            check(False, f"next_state{where}", value, f"a state from 0 to {states - 1}")
        for name in ("reward", "reward_std"):
            value = getattr(self, name)
            bad = ~np.isfinite(value) | ((value < 0) if name == "reward_std" else False)
            allowed = "finite, at least 0" if name == "reward_std" else "a finite number"
            if bad.any():
                check(False, f"{name}{_first(bad)}", float(value[bad][0]), allowed)
        check(0 <= self.discount < 1, "discount", self.discount, "from 0 to below 1")
        check_count("time_limit", self.time_limit)

    @property
    def num_states(self) -> int:
        """The number of states, S."""
        return self.probability.shape[0]

    @property
    def num_actions(self) -> int:
        """The number of actions, A."""
        return self.probability.shape[1]

    @cached_property
    def _contents(self) -> tuple[Any, ...]:
        arrays = (*_TABLES, "start", "features")
        found = [getattr(self, name) for name in arrays]
        parts = [(a.shape, a.tobytes()) if a is not None else None for a in found]
        return (*parts, self.name, self.action_names, self.discount, self.time_limit)

    @cached_property
    def _hash(self) -> int:
        return hash(self._contents)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FiniteMdp):
            return NotImplemented
        return self is other or (self._hash == other._hash and self._contents == other._contents)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"FiniteMdp({self.name!r}: {self.num_states} states, {self.num_actions} actions)"

    @cached_property
    def visited(self) -> np.ndarray:
        """Which states an agent can ever act in [S].

        Those that episodes start in, and those that are reached from them without terminating,
        whatever the actions.
        """
        assert self.start is not None
        visited = self.start > 0
        moves = (self.probability > 0) & ~np.asarray(self.terminated)
        while True:
            reached = visited.copy()
            reached[self.next_state[visited][moves[visited]]] = True
            if np.array_equal(reached, visited):
                return visited
            visited = reached

    def return_bounds(self, discount: float | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds of the discounted return from each state [S], over all policies.

        The best and the worst outcome of every step, `u(s) = max_{a,k} r + discount u(s')`, without
        noise of rewards.
        """
        discount = self.discount if discount is None else discount
        weight = np.where(self.terminated, 0.0, discount)
        bounds = []
        for sign in (-1.0, 1.0):
            rewards = np.where(self.probability > 0, sign * self.reward, -np.inf)
            most, change = np.zeros(self.num_states), np.inf
            while change > 1e-3 * (1 - discount) * max(1e-30, np.abs(most).max()):
                updated = (rewards + weight * most[self.next_state]).max(axis=(1, 2))
                change, most = np.abs(updated - most).max(), updated
            # The rest of the iteration, which contracts by the discount.
            bounds.append(sign * (most + change * discount / (1 - discount)))
        return bounds[0], bounds[1]

    @property
    def observations(self) -> np.ndarray:
        """What an agent sees in each state [S, d]."""
        return np.eye(self.num_states, dtype=bool) if self.features is None else self.features

    @classmethod
    def from_table(
        cls,
        table: Mapping[int, Mapping[int, Sequence[tuple[Any, ...]]]],
        start: np.ndarray | None = None,
        **fields: Any,
    ) -> FiniteMdp:
        """Read a table as Gymnasium publishes it: `P[s][a] = [(p, s', r, terminated), ...]`."""
        try:
            rows = [[list(table[s][a]) for a in range(len(table[s]))] for s in range(len(table))]
            most = max(len(outcomes) for row in rows for outcomes in row)
            padding = (0.0, 0, 0.0, False)
            cells = np.array(
                [[[*o, *[padding] * (most - len(o))] for o in row] for row in rows], np.float64
            )
            probability, next_state, reward, terminated = np.moveaxis(cells, -1, 0)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise UmdqnError(
                "the table must have rows P[s][a] = [(probability, next state, reward, "
                f"terminated), ...] for states and actions from 0 on: {error!r}"
            ) from error
        return cls(
            probability, next_state, reward, terminated=terminated > 0, start=start, **fields
        )

    @classmethod
    def from_arrays(
        cls,
        transitions: Any,
        rewards: Any,
        reward_std: Any = 0.0,
        terminal: Sequence[int] = (),
        **fields: Any,
    ) -> FiniteMdp:
        """Read transition probabilities [S, A, S] and mean rewards [S, A] or [S, A, S].

        Episodes end on arrival in a `terminal` state. `reward_std` is a number, or has a shape that
        rewards may have.
        """
        dense = _array("transitions", transitions, np.float64)
        square = dense.ndim == 3 and dense.shape[0] == dense.shape[2]
        check(square, "transitions", dense.shape, "shape [S, A, S]")
        _check_probabilities("transitions", dense)
        # Outcomes that can happen come first, so that few columns are left.
        order = np.argsort(dense <= 0, axis=-1, kind="stable")
        order = order[..., : int((dense > 0).sum(axis=-1).max())]

        def picked(name: str, value: Any) -> np.ndarray:
            table = _array(name, value, np.float64)
            table = table[..., None] if table.shape == dense.shape[:2] else table
            good = table.shape in ((), dense.shape, (*dense.shape[:2], 1))
            check(good, name, table.shape, f"shape {dense.shape[:2]} or {dense.shape}")
            return np.take_along_axis(np.broadcast_to(table, dense.shape), order, -1)

        return cls(
            np.take_along_axis(dense, order, -1),
            order,
            picked("rewards", rewards),
            picked("reward_std", reward_std),
            np.isin(order, np.asarray(terminal, np.int64)),
            **fields,
        )


def _array(name: str, value: Any, kind: Any) -> np.ndarray:
    try:
        found = np.asarray(value)
        cast = found.astype(kind)
        same = kind is not np.int64 or bool(np.all(cast == found))
    except (TypeError, ValueError) as error:
        raise UmdqnError(f"{name} must be an array of numbers: {error}") from error
    check(same, name, "fractions", "whole numbers")
    return cast


def _check_probabilities(name: str, value: np.ndarray) -> None:
    bad = ~(np.isfinite(value) & (value >= 0))
    if bad.any():
        allowed = "at least 0 and not NaN"
        check(False, f"{name}{_first(bad)}", float(value[bad][0]), allowed)
    sums = value.sum(axis=-1)
    off = np.abs(sums - 1) > _TOLERANCE
    if np.any(off):
        where, found = _first(np.atleast_1d(off)), float(np.atleast_1d(sums)[np.atleast_1d(off)][0])
        row = name if sums.ndim == 0 else f"{name}{where}"
        check(False, f"sum of {row}", found, "probabilities must sum to 1")


def _first(where: np.ndarray) -> str:
    """Return the index of the first true entry, as Python writes it."""
    return str(np.argwhere(where)[0].tolist())
