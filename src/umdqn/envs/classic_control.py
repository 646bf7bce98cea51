"""Classic control: CartPole, Acrobot and MountainCar compiled, LunarLander from Gymnasium."""

from __future__ import annotations

import math
from functools import partial
from typing import ClassVar

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from umdqn.envs.entry import (
    Entry,
    Listing,
    Resolver,
    compiled_entry,
    hosted_entry,
    list_compiled,
)
from umdqn.envs.environment import Environment, Outcome
from umdqn.envs.setup import Setup
from umdqn.specs import UNBOUNDED, Domain, EnvSpec, Key, Observation

_FAMILY = "classic-control"
_DISCOUNT = 0.99


def _bounds(high: tuple[float, ...], low: tuple[float, ...] | None = None) -> Observation:
    low = tuple(-bound for bound in high) if low is None else low
    return Observation((len(high),), "float32", low, high)


class CartPole(Environment):
    """Balance a pole on a cart: reward 1 per step until it falls. The state is the observation."""

    _POLE_MASS, _MASS, _HALF_LENGTH = 0.1, 1.1, 0.5
    _FORCE, _GRAVITY, _SECONDS = 10.0, 9.8, 0.02
    _FARTHEST, _STEEPEST = 2.4, math.radians(12)

    def __init__(self, name: str, time_limit: int):
        self.spec = EnvSpec(
            name=name,
            family=_FAMILY,
            num_actions=2,
            observation=_bounds((2 * self._FARTHEST, UNBOUNDED, 2 * self._STEEPEST, UNBOUNDED)),
            discount=_DISCOUNT,
            domain=Domain(-10.0, 110.0),
            time_limit=time_limit,
            action_names=("LEFT", "RIGHT"),
        )

    def reset(self, key: Key) -> Float[Array, "4"]:
        return jax.random.uniform(key, (4,), minval=-0.05, maxval=0.05)

    def step(
        self, state: Float[Array, "4"], action: Int[Array, ""], key: Key
    ) -> tuple[Float[Array, "4"], Outcome]:
        _, speed, angle, turn = state
        force = jnp.where(action == 1, self._FORCE, -self._FORCE)
        sine, cosine = jnp.sin(angle), jnp.cos(angle)
        leverage = self._POLE_MASS * self._HALF_LENGTH
        push = (force + leverage * turn**2 * sine) / self._MASS
        inertia = self._HALF_LENGTH * (4 / 3 - self._POLE_MASS * cosine**2 / self._MASS)
        turning = (self._GRAVITY * sine - cosine * push) / inertia
        moving = push - leverage * turning * cosine / self._MASS
        state = state + self._SECONDS * jnp.stack([speed, moving, turn, turning])
        fallen = (jnp.abs(state[0]) > self._FARTHEST) | (jnp.abs(state[2]) > self._STEEPEST)
        return state, Outcome(jnp.float32(1), fallen)

    def observe(self, state: Float[Array, "4"]) -> Float[Array, "4"]:
        return state


class MountainCar(Environment):
    """Drive a weak car up a hill: reward -1 per step until it is up. The state is observed."""

    _LEFT, _RIGHT, _GOAL = -1.2, 0.6, 0.5
    _FASTEST, _FORCE, _GRAVITY = 0.07, 0.001, 0.0025

    spec = EnvSpec(
        name="MountainCar-v0",
        family=_FAMILY,
        num_actions=3,
        observation=_bounds((_RIGHT, _FASTEST), (_LEFT, -_FASTEST)),
        discount=_DISCOUNT,
        domain=Domain(-110.0, 10.0),
        time_limit=200,
        action_names=("LEFT", "COAST", "RIGHT"),
    )

    def reset(self, key: Key) -> Float[Array, "2"]:
        return jnp.stack([jax.random.uniform(key, minval=-0.6, maxval=-0.4), jnp.float32(0)])

    def step(
        self, state: Float[Array, "2"], action: Int[Array, ""], key: Key
    ) -> tuple[Float[Array, "2"], Outcome]:
        position, speed = state
        speed = speed + (action - 1) * self._FORCE - self._GRAVITY * jnp.cos(3 * position)
        speed = jnp.clip(speed, -self._FASTEST, self._FASTEST)
        position = jnp.clip(position + speed, self._LEFT, self._RIGHT)
        speed = jnp.where((position == self._LEFT) & (speed < 0), 0.0, speed)
        arrived = (position >= self._GOAL) & (speed >= 0)
        return jnp.stack([position, speed]), Outcome(jnp.float32(-1), arrived)

    def observe(self, state: Float[Array, "2"]) -> Float[Array, "2"]:
        return state


class Acrobot(Environment):
    """Swing up two links by the joint between them: reward -1 per step until the tip is high.

    The state is both angles and both speeds. All masses and lengths are 1, centres of mass at 1/2.
    """

    _SECONDS, _GRAVITY, _INERTIA = 0.2, 9.8, 1.0
    _FASTEST = (4 * math.pi, 9 * math.pi)

    spec = EnvSpec(
        name="Acrobot-v1",
        family=_FAMILY,
        num_actions=3,
        observation=_bounds((1.0, 1.0, 1.0, 1.0, *_FASTEST)),
        discount=_DISCOUNT,
        domain=Domain(-110.0, 10.0),
        time_limit=500,
        action_names=("-1 TORQUE", "NO TORQUE", "+1 TORQUE"),
    )

    def reset(self, key: Key) -> Float[Array, "4"]:
        return jax.random.uniform(key, (4,), minval=-0.1, maxval=0.1)

    def step(
        self, state: Float[Array, "4"], action: Int[Array, ""], key: Key
    ) -> tuple[Float[Array, "4"], Outcome]:
        torque = (action - 1).astype(jnp.float32)
        angles, speeds = jnp.split(self._runge_kutta(state, torque), 2)
        # Gymnasium wraps an angle only if it has left [-pi, pi].
        turns = jnp.where(jnp.abs(angles) > math.pi, jnp.round(angles / (2 * math.pi)), 0.0)
        angles = angles - 2 * math.pi * turns
        fastest = np.array(self._FASTEST, np.float32)
        state = jnp.concatenate([angles, jnp.clip(speeds, -fastest, fastest)])
        high = -jnp.cos(state[0]) - jnp.cos(state[0] + state[1]) > 1
        return state, Outcome(jnp.where(high, 0.0, -1.0), high)

    def _runge_kutta(self, state: Float[Array, "4"], torque: Float[Array, ""]) -> Array:
        half = self._SECONDS / 2
        first = self._rates(state, torque)
        second = self._rates(state + half * first, torque)
        third = self._rates(state + half * second, torque)
        fourth = self._rates(state + self._SECONDS * third, torque)
        return state + self._SECONDS / 6 * (first + 2 * second + 2 * third + fourth)

    def _rates(self, state: Float[Array, "4"], torque: Float[Array, ""]) -> Float[Array, "4"]:
        """Return speeds and accelerations by the equations in Sutton and Barto's book."""
        angle1, angle2, speed1, speed2 = state
        cosine = jnp.cos(angle2)
        coupling = 0.5 * jnp.sin(angle2)
        own = 0.25 + (1.25 + cosine) + 2 * self._INERTIA
        cross = 0.25 + 0.5 * cosine + self._INERTIA
        weight2 = 0.5 * self._GRAVITY * jnp.sin(angle1 + angle2)
        weight1 = (
            weight2
            + 1.5 * self._GRAVITY * jnp.sin(angle1)
            - coupling * speed2 * (speed2 + 2 * speed1)
        )
        push = torque + cross / own * weight1 - coupling * speed1**2 - weight2
        second = push / (0.25 + self._INERTIA - cross**2 / own)
        first = -(cross * second + weight1) / own
        return jnp.stack([speed1, speed2, first, second])

    def observe(self, state: Float[Array, "4"]) -> Float[Array, "6"]:
        angles, speeds = state[:2], state[2:]
        pairs = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
        return jnp.concatenate([pairs.reshape(4), speeds])


_COMPILED = (CartPole("CartPole-v0", 200), CartPole("CartPole-v1", 500), Acrobot(), MountainCar())


class ClassicControl(Resolver):
    """The paper's classic control tasks, by their Gymnasium ids."""

    listings: ClassVar = {
        **{env.spec.name: list_compiled(env) for env in _COMPILED},
        "LunarLander-v3": Listing(_FAMILY, Domain(-150.0, 200.0), "box2d", None),
    }

    def resolve(self, name: str, setup: Setup) -> Entry | None:
        listing = self.listings.get(name)
        if listing is None:
            return None
        if listing.compiled is not None:
            return compiled_entry(listing.compiled, name, setup)
        # Its lander flies beyond the bounds of its Box.
        return hosted_entry(name, partial(gymnasium.make, name), setup, listing, bounded=False)
