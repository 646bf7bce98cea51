"""The grid world as a Gymnasium environment, for the host loop, rendering and other libraries.

Importing this module registers it with Gymnasium.
"""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

from umdqn.envs import grid_world as grid
from umdqn.envs.entry import Entry, Resolver, compiled_entry, list_compiled
from umdqn.envs.setup import Setup

ID = "umdqn/GridWorld-v0"

_CELL_PIXELS = 32
_COLOURS = {"floor": (240, 240, 240), "trap": (213, 94, 0), "target": (0, 158, 115)}
_AGENT, _LINES = (0, 114, 178), (200, 200, 200)


class GridWorldEnv(gymnasium.Env):
    """The rules of the compiled environment in Python.

    Time limits are applied by `gymnasium.make`, which truncates after 20 steps.
    """

    metadata = {"render_modes": ["rgb_array", "ansi"], "render_fps": 4}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None):
        self.render_mode = render_mode
        self.observation_space = spaces.Box(0.0, grid.SIZE - 1.0, (2,), np.float32)
        self.action_space = spaces.Discrete(len(grid.ACTIONS))
        self._position = grid.STATES[0]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start in a random state other than the trap and the target."""
        super().reset(seed=seed)
        self._position = grid.STATES[self.np_random.integers(len(grid.STATES))]
        return self._observation(), {}

    def step(
        self, action: int | np.integer
    ) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Move one or two cells at random."""
        cells = 2 if self.np_random.random() < grid.JUMP_PROBABILITY else 1
        self._position = grid.move(self._position, int(action), cells)
        reward = grid.expected_reward(self._position)
        noise = grid.REWARD_STD * self.np_random.standard_normal()
        terminated = self._position in (grid.TRAP, grid.TARGET)
        return self._observation(), float(reward + noise), terminated, False, {}

    def _observation(self) -> np.ndarray:
        return np.array(self._position, np.float32)

    def render(self) -> Any:
        """Return an image or a text of the grid; y points upwards."""
        return {"rgb_array": self._picture, "ansi": self._text}.get(
            self.render_mode or "", lambda: None
        )()

    def _text(self) -> str:
        marks = {grid.TRAP: "X", grid.TARGET: "G"} | {self._position: "A"}
        rows = (
            " ".join(marks.get((x, y), ".") for x in range(grid.SIZE))
            for y in reversed(range(grid.SIZE))
        )
        return "\n".join(rows) + "\n"

    def _picture(self) -> np.ndarray:
        picture = np.full((grid.SIZE, grid.SIZE, 3), _COLOURS["floor"], np.uint8)
        for name, (x, y) in (("trap", grid.TRAP), ("target", grid.TARGET)):
            picture[grid.SIZE - 1 - y, x] = _COLOURS[name]
        picture = picture.repeat(_CELL_PIXELS, axis=0).repeat(_CELL_PIXELS, axis=1)
        picture[::_CELL_PIXELS] = picture[:, ::_CELL_PIXELS] = _LINES
        x, y = self._position
        rows, columns = np.mgrid[: picture.shape[0], : picture.shape[1]]
        centre = (grid.SIZE - 0.5 - y) * _CELL_PIXELS, (x + 0.5) * _CELL_PIXELS
        near = (rows - centre[0]) ** 2 + (columns - centre[1]) ** 2 < (_CELL_PIXELS / 3) ** 2
        picture[near] = _AGENT
        return picture


def register() -> None:
    """Register the environment with Gymnasium, once."""
    if ID not in gymnasium.registry:
        gymnasium.register(
            ID, f"{__name__}:{GridWorldEnv.__name__}", max_episode_steps=grid.TIME_LIMIT
        )


class GridWorlds(Resolver):
    """The name `grid-world`."""

    listings: ClassVar = {grid.SPEC.name: list_compiled(grid.GridWorld())}

    def resolve(self, name: str, setup: Setup) -> Entry | None:
        return compiled_entry(grid.GridWorld(), ID, setup) if name in self.listings else None


register()
