"""Environments that run in Python: copies that step together, with every answer checked."""

from __future__ import annotations

import abc
import math
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np

from umdqn.envs.observations import Reader, Unexpected
from umdqn.envs.positions import History, Position
from umdqn.errors import UmdqnError, notice, one_line, shown
from umdqn.extras import missing
from umdqn.specs import EnvSpec

Maker = Callable[..., gymnasium.Env] | tuple[Callable[..., gymnasium.Env], ...]
"""Makes an environment; several make one copy after the other."""


class EnvironmentFault(UmdqnError):
    """An environment raised, or returned something that its spaces do not allow."""


class Stepped(NamedTuple):
    """The outcome of one step of all copies."""

    observation: np.ndarray
    """Observation after the step; the last one of an episode where it ended."""
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    following: np.ndarray
    """Observation to act on next; the first one of a new episode where one ended."""

    @property
    def last(self) -> np.ndarray:
        """Whether the episode ended."""
        return self.terminated | self.truncated


class HostEnv(abc.ABC):
    """Copies of an environment, each of which starts a new episode when one ends.

    Every episode has its own seed, derived from the common seed, the copy and the episode's number.
    """

    def __init__(self, spec: EnvSpec, copies: int):
        self.spec, self.copies = spec, copies
        self._seed = 0
        self._episodes = [0] * copies
        self._history = History(copies)

    @abc.abstractmethod
    def _begin(self, copy: int, seed: int) -> np.ndarray:
        """Start an episode of one copy and return its first observation."""

    @abc.abstractmethod
    def _advance(self, actions: dict[int, int]) -> dict[int, tuple[np.ndarray, float, bool, bool]]:
        """Step some copies and return observation, reward, terminated and truncated of each."""

    def reset(self, seed: int) -> np.ndarray:
        """Start all copies; the seed determines all episodes."""
        self._seed, self._episodes = seed, [-1] * self.copies
        return np.stack([self.restart(copy) for copy in range(self.copies)])

    def restart(self, copy: int) -> np.ndarray:
        """Start the next episode of one copy and return its first observation."""
        self._episodes[copy] += 1
        self._history.begin(copy)
        return self._begin(copy, self._episode_seed(copy))

    def _episode_seed(self, copy: int) -> int:
        words = np.random.SeedSequence([self._seed, copy, self._episodes[copy]]).generate_state(1)
        # Some environments accept only signed 32-bit seeds.
        return int(words[0]) >> 1

    def step(self, actions: np.ndarray) -> Stepped:
        """Step every copy, and start a new episode where one ended."""
        chosen = dict(enumerate(actions.tolist()))
        answers = self._advance(chosen)
        for copy, action in chosen.items():
            self._history.add(copy, action)
        seen, rewards, terminated, truncated = zip(
            *(answers[copy] for copy in range(self.copies)), strict=True
        )
        following = [
            self.restart(copy) if terminated[copy] or truncated[copy] else seen[copy]
            for copy in range(self.copies)
        ]
        ends = np.array([terminated, truncated], bool)
        return Stepped(np.stack(seen), np.array(rewards), ends[0], ends[1], np.stack(following))

    def position(self) -> Position:
        """Return the position of the copies, for `go_to`."""
        return Position(self._seed, tuple(self._episodes), self._history.actions)

    def go_to(self, position: Position) -> np.ndarray:
        """Return to a position by repeating the actions of the current episodes.

        Where they are not known, the next episode begins.
        """
        self._seed, self._episodes = position.seed, list(position.episodes)
        self._history.restore(position.actions)
        observations = []
        for copy, done in enumerate(position.actions):
            if done is None:
                observations.append(self.restart(copy))
                continue
            observation = self._begin(copy, self._episode_seed(copy))
            for action in done:
                observation, _, terminated, truncated = self._advance({copy: action})[copy]
                if terminated or truncated:
                    # It did not end here the first time: the environment is not deterministic.
                    observation = self.restart(copy)
                    break
            observations.append(observation)
        return np.stack(observations)

    def render(self) -> np.ndarray | None:
        """Return an image of the first copy, or None if it cannot be rendered."""
        return None

    def close(self) -> None:
        """Release the resources of all copies."""
        return


class GymnasiumEnvs(HostEnv):
    """Copies of any Gymnasium environment; every answer is checked against its spaces."""

    def __init__(
        self,
        make: Maker,
        spec: EnvSpec,
        copies: int = 1,
        bounded: bool = True,
    ):
        super().__init__(spec, copies)
        makers = make if isinstance(make, tuple) else (make,)
        self._envs = [
            guarded(spec.name, "be made", makers[copy % len(makers)]) for copy in range(copies)
        ]
        self._read = Reader(self._envs[0].observation_space, spec.observation, bounded)
        self._steps = 0

    def _begin(self, copy: int, seed: int) -> np.ndarray:
        env = self._envs[copy]
        answer = guarded(self.spec.name, "reset", lambda: env.reset(seed=seed))
        pair = isinstance(answer, tuple) and len(answer) == 2
        self._require(pair, "reset()", "a pair of observation and info", answer)
        return self._observation(answer[0])

    def _advance(self, actions: dict[int, int]) -> dict[int, tuple[np.ndarray, float, bool, bool]]:
        answers = {copy: self._step_one(copy, action) for copy, action in actions.items()}
        self._steps += 1
        return answers

    def _step_one(self, copy: int, action: int) -> tuple[np.ndarray, float, bool, bool]:
        try:
            answer = self._envs[copy].step(action + self.spec.first_action)
        except Exception as error:
            raise self._fault(f"raised {one_line(error)}{_where(error)}") from error
        if not (isinstance(answer, tuple) and len(answer) == 5):
            expected = "observation, reward, terminated, truncated and info"
            self._require(False, "step()", expected, answer)
        observation, reward, terminated, truncated, _ = answer
        for field, flag in (("terminated", terminated), ("truncated", truncated)):
            truth = flag is True or flag is False or isinstance(flag, np.bool_)
            self._require(truth, field, "True or False", flag)
        return (
            self._observation(observation),
            self._reward(reward),
            bool(terminated),
            bool(truncated),
        )

    def _observation(self, value: Any) -> np.ndarray:
        try:
            return self._read(value)
        except Unexpected as wrong:
            raise self._unexpected(wrong.field, wrong.expected, wrong.actual) from None

    def _reward(self, value: Any) -> float:
        try:
            # Text is refused even if it reads as a number.
            number = math.nan if isinstance(value, str | bytes) else float(value)
        except Exception:  # of a user's class
            number = math.nan
        self._require(math.isfinite(number), "reward", "a finite number", value)
        return number

    def _require(self, condition: bool, field: str, expected: str, actual: Any) -> None:
        if not condition:
            raise self._unexpected(field, expected, actual)

    def _unexpected(self, field: str, expected: str, actual: Any) -> EnvironmentFault:
        return self._fault(f"{field} must be {expected}, not {_describe(actual)}")

    def _fault(self, what: str) -> EnvironmentFault:
        return EnvironmentFault(
            f"environment {self.spec.name!r}, step {self._steps + 1:,} of its copies: {what}"
        )

    def render(self) -> np.ndarray | None:
        try:
            picture = guarded(self.spec.name, "render", self._envs[0].render)
        except EnvironmentFault as fault:
            if isinstance(fault.__cause__, NotImplementedError):
                return None
            if isinstance(fault.__cause__, gymnasium.error.DependencyNotInstalled):
                raise missing(f"rendering {self.spec.name!r}", "render") from fault
            raise
        return picture if isinstance(picture, np.ndarray) and picture.ndim == 3 else None

    def close(self) -> None:
        for env in self._envs:
            close(self.spec.name, env)


def guarded(name: str, what: str, call: Callable[[], Any]) -> Any:
    """Call into a user's environment and turn any exception into a message of one line."""
    try:
        return call()
    except UmdqnError:
        raise
    except Exception as error:
        raise EnvironmentFault(
            f"environment {name!r} could not {what}: {one_line(error)}{_where(error)}"
        ) from error


def _where(error: Exception) -> str:
    """Return the file and line that raised an error."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def close(name: str, env: Any) -> None:
    """Close an environment; an exception becomes a notice."""
    try:
        env.close()
    except Exception as error:
        notice(f"environment {name!r} could not close: {one_line(error)}")


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        finite = bool(np.isfinite(value).all())
        return f"{value.dtype} of shape {value.shape}{'' if finite else ' with NaN or infinity'}"
    text = " ".join(shown(value).split())
    return f"{type(value).__name__} {text[:60]}"
