"""The stochastic grid world (appendix D of the paper)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from umdqn.envs.environment import Environment, Outcome
from umdqn.envs.finite import FiniteMdp
from umdqn.errors import UmdqnError
from umdqn.specs import Domain, EnvSpec, Key, Observation

SIZE = 7
TRAP = (3, 3)
TARGET = (3, 6)
MOVES = ((1, 0), (0, -1), (-1, 0), (0, 1))
ACTIONS = ("RIGHT", "DOWN", "LEFT", "UP")
REWARD_STD = 0.1
JUMP_PROBABILITY = 0.5
TIME_LIMIT = 20
DISCOUNT = 0.5

STATES = tuple((x, y) for x in range(SIZE) for y in range(SIZE) if (x, y) not in (TRAP, TARGET))
"""The 47 states that are not terminal; every episode starts in one of them."""

SPEC = EnvSpec(
    name="grid-world",
    family="grid-world",
    num_actions=len(ACTIONS),
    observation=Observation((2,), "float32", (0.0, 0.0), (SIZE - 1.0, SIZE - 1.0)),
    discount=DISCOUNT,
    domain=Domain(-2.0, 2.0),
    time_limit=TIME_LIMIT,
    action_names=ACTIONS,
)


def move(position: tuple[int, int], action: int, cells: int) -> tuple[int, int]:
    """Return the position `cells` cells further in a direction, clipped at the borders.

    A jump of two cells ignores the cell in between.
    """
    x, y = (
        min(max(coordinate + cells * delta, 0), SIZE - 1)
        for coordinate, delta in zip(position, MOVES[action], strict=True)
    )
    return x, y


def expected_reward(position: tuple[int, int]) -> float:
    """Return the mean reward for arriving at a position."""
    return {TARGET: 1.0, TRAP: -1.0}.get(position, 0.0)


def arrivals(position: tuple[int, int], action: int) -> dict[tuple[int, int], float]:
    """Return the probability of each position that an action can lead to."""
    reached: dict[tuple[int, int], float] = {}
    for cells, probability in ((1, 1 - JUMP_PROBABILITY), (2, JUMP_PROBABILITY)):
        cell = move(position, action, cells)
        reached[cell] = reached.get(cell, 0.0) + probability
    return reached


def grid_world_mdp() -> FiniteMdp:
    """Return the tables: the 47 states in the order of `STATES`, then the trap and the target."""
    cells = (*STATES, TRAP, TARGET)
    index = {cell: i for i, cell in enumerate(cells)}
    table = {
        s: {
            a: [
                (probability, index[reached], expected_reward(reached), reached in (TRAP, TARGET))
                for reached, probability in arrivals(cell, a).items()
            ]
            if cell in STATES
            else [(1.0, s, 0.0, True)]
            for a in range(len(ACTIONS))
        }
        for cell, s in index.items()
    }
    return FiniteMdp.from_table(
        table,
        start=np.array([cell in STATES for cell in cells]) / len(STATES),
        reward_std=REWARD_STD,
        features=np.array(cells),
        name=SPEC.name,
        action_names=ACTIONS,
        discount=DISCOUNT,
        time_limit=TIME_LIMIT,
    )


def parse_state(text: str) -> tuple[int, int]:
    """Read a non-terminal state from text such as `2,6`."""
    parts = text.split(",")
    if len(parts) == 2 and all(part.strip().lstrip("-").isdigit() for part in parts):
        state = (int(parts[0]), int(parts[1]))
        if state in STATES:
            return state
    raise UmdqnError(
        f"state {text!r} is not a state of grid-world: give x,y with both from 0 to {SIZE - 1}, "
        f"other than the trap {TRAP} and the target {TARGET}"
    )


class GridWorld(Environment):
    """The grid world as a compiled environment; the state is the position."""

    spec = SPEC

    def reset(self, key: Key) -> Int[Array, "2"]:
        return jnp.asarray(np.array(STATES))[jax.random.randint(key, (), 0, len(STATES))]

    def step(
        self, state: Int[Array, "2"], action: Int[Array, ""], key: Key
    ) -> tuple[Int[Array, "2"], Outcome]:
        jump_key, reward_key = jax.random.split(key)
        cells = 1 + jax.random.bernoulli(jump_key, JUMP_PROBABILITY)
        position = jnp.clip(state + cells * jnp.asarray(np.array(MOVES))[action], 0, SIZE - 1)
        at_target = jnp.all(position == jnp.asarray(np.array(TARGET)))
        at_trap = jnp.all(position == jnp.asarray(np.array(TRAP)))
        noise = REWARD_STD * jax.random.normal(reward_key)
        reward = at_target.astype(jnp.float32) - at_trap + noise
        return position, Outcome(reward, at_target | at_trap)

    def observe(self, state: Int[Array, "2"]) -> Float[Array, "2"]:
        return state.astype(jnp.float32)
