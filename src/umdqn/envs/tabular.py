"""Environments that sample the rows of a finite MDP: compiled, and with Gymnasium's interface."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jaxtyping import Array, Float, Int, Shaped

from umdqn.envs.entry import Entry, gymnasium_entry, hosted_entry, list_compiled
from umdqn.envs.environment import Environment, Outcome
from umdqn.envs.finite import FiniteMdp
from umdqn.envs.observations import one_hot_observation
from umdqn.envs.setup import Setup
from umdqn.specs import Domain, EnvSpec, Key, Observation

FAMILY = "finite"
# Standard deviations of reward noise that the domain of returns covers.
_NOISE_WIDTHS = 4.0
_DOMAIN_MARGIN = 0.05


class FiniteEnvironment(Environment):
    """Samples the rows of a finite MDP; the state is its number."""

    def __init__(self, mdp: FiniteMdp, name: str | None = None):
        self.mdp = mdp
        self.spec = EnvSpec(
            name=mdp.name if name is None else name,
            family=FAMILY,
            num_actions=mdp.num_actions,
            observation=_observation(mdp),
            discount=mdp.discount,
            domain=_domain(mdp),
            time_limit=mdp.time_limit,
            action_names=mdp.action_names,
        )

    def reset(self, key: Key) -> Int[Array, ""]:
        return _drawn(key, jnp.asarray(_cumulated(np.asarray(self.mdp.start))))

    def step(
        self, state: Int[Array, ""], action: Int[Array, ""], key: Key
    ) -> tuple[Int[Array, ""], Outcome]:
        outcome_key, noise_key = jax.random.split(key)
        k = _drawn(outcome_key, jnp.asarray(_cumulated(self.mdp.probability))[state, action])

        def of(table: np.ndarray) -> Array:
            return jnp.asarray(table)[state, action, k]

        reward = of(self.mdp.reward.astype(np.float32))
        stds = np.asarray(self.mdp.reward_std, np.float32)
        if stds.any():
            reward = reward + of(stds) * jax.random.normal(noise_key)
        following = of(self.mdp.next_state.astype(np.int32))
        return following, Outcome(reward, of(np.asarray(self.mdp.terminated)))

    def observe(self, state: Int[Array, ""]) -> Shaped[Array, "..."]:
        if self.mdp.features is None:
            return jnp.arange(self.mdp.num_states) == state
        return jnp.asarray(self.mdp.features)[state]


def _drawn(key: Key, cumulated: Float[Array, "outcomes"]) -> Int[Array, ""]:
    # Uniform numbers are below 1, where the sums end: what has no probability is never drawn.
    return jnp.sum(jax.random.uniform(key) >= cumulated).astype(jnp.int32)


def _cumulated(probability: np.ndarray) -> np.ndarray:
    """Return cumulative sums that are exactly 1 from the last possible outcome on."""
    sums = np.cumsum(probability, axis=-1)
    ended = np.cumsum(probability[..., ::-1], axis=-1)[..., ::-1] - probability <= 0
    return np.where(ended, 1.0, sums / sums[..., -1:]).astype(np.float32)


def _observation(mdp: FiniteMdp) -> Observation:
    if mdp.features is None:
        return one_hot_observation(mdp.num_states)
    low, high = (tuple(f(mdp.features, axis=0).tolist()) for f in (np.min, np.max))
    return Observation((mdp.features.shape[1],), "float32", low, high)


def _domain(mdp: FiniteMdp) -> Domain:
    """Return an interval that holds all returns, also of truncated episodes, with some margin."""
    lows, highs = mdp.return_bounds()
    low, high = (
        float(f(b[mdp.visited], initial=0.0)) for f, b in ((np.min, lows), (np.max, highs))
    )
    noise = _NOISE_WIDTHS * float(np.max(mdp.reward_std)) / (1 - mdp.discount**2) ** 0.5
    margin = _DOMAIN_MARGIN * (high - low or 1.0) + noise
    return Domain(float(f"{low - margin:.4g}"), float(f"{high + margin:.4g}"))


class TabularEnv(gymnasium.Env):
    """A finite MDP with Gymnasium's interface.

    Observations are the numbers of states, or features if the MDP has them. Time limits are applied
    by `gymnasium.make` or `gymnasium.wrappers.TimeLimit`.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012

    def __init__(self, mdp: FiniteMdp, render_mode: str | None = None):
        self.render_mode, self.mdp = render_mode, mdp
        self.action_names = mdp.action_names
        self.action_space = spaces.Discrete(mdp.num_actions)
        if mdp.features is None:
            self.observation_space: spaces.Space = spaces.Discrete(mdp.num_states)
        else:
            low, high = mdp.features.min(axis=0), mdp.features.max(axis=0)
            self.observation_space = spaces.Box(low, high, dtype=np.float32)
        self._state = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start in a state drawn from the initial distribution."""
        super().reset(seed=seed)
        assert self.mdp.start is not None
        self._state = self._draw(self.mdp.start)
        return self._observation(), {}

    def step(self, action: int | np.integer) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Draw one of the outcomes of the state and the action."""
        mdp, row = self.mdp, (self._state, int(action))
        cell = (*row, self._draw(mdp.probability[row]))
        noise = np.asarray(mdp.reward_std)[cell] * self.np_random.standard_normal()
        self._state = int(mdp.next_state[cell])
        terminated = bool(np.asarray(mdp.terminated)[cell])
        return self._observation(), float(mdp.reward[cell] + noise), terminated, False, {}

    def _draw(self, probability: np.ndarray) -> int:
        return int(self.np_random.choice(len(probability), p=probability / probability.sum()))

    def _observation(self) -> Any:
        features = self.mdp.features
        return self._state if features is None else features[self._state].copy()

    def render(self) -> Any:
        """Return the number of the state as text."""
        return f"state {self._state}\n" if self.render_mode == "ansi" else None


def limited(mdp: FiniteMdp) -> gymnasium.Env:
    """Make the Gymnasium environment of an MDP, with its time limit."""
    return gymnasium.wrappers.TimeLimit(TabularEnv(mdp), mdp.time_limit)


def finite_entry(
    env: FiniteEnvironment, setup: Setup, make: Callable[..., gymnasium.Env] | None = None
) -> Entry:
    """Return the entry of a finite MDP; `make` makes the same for the host loop."""
    make = partial(limited, env.mdp) if make is None else make
    if not setup.plain:
        return hosted_entry(env.spec.name, make, setup, list_compiled(env))
    return gymnasium_entry(env.spec, make, env)


def register(env_id: str, env: type[TabularEnv], time_limit: int) -> None:
    """Register an environment with Gymnasium, once."""
    if env_id not in gymnasium.registry:
        path = f"{env.__module__}:{env.__name__}"
        gymnasium.register(env_id, path, max_episode_steps=time_limit)
