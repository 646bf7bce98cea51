"""The MinAtar games, run by the `minatar` package (GPL, therefore an extra)."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

from umdqn.envs.entry import Entry, Listing, Resolver, hosted_entry
from umdqn.errors import unknown
from umdqn.extras import missing
from umdqn.specs import Domain

PREFIX = "MinAtar/"

GAMES = {
    "Asterix": "asterix",
    "Breakout": "breakout",
    "Freeway": "freeway",
    "Seaquest": "seaquest",
    "SpaceInvaders": "space_invaders",
}
"""Name of each game in the `minatar` package, by the name that users type."""
_HIGHEST = dict.fromkeys(GAMES, 10.0) | {"SpaceInvaders": 20.0}
_ACTIONS = ("NOOP", "LEFT", "UP", "RIGHT", "DOWN", "FIRE")
_PIXELS = 16


class MinAtar(gymnasium.Env):
    """A game with sticky actions (0.1), difficulty ramping and its minimal set of actions."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012

    def __init__(self, game: str, render_mode: str | None = None):
        try:
            from minatar import Environment
        except ImportError:
            raise missing("MinAtar", "minatar") from None
        self._game = Environment(GAMES[game], sticky_action_prob=0.1, difficulty_ramping=True)
        self._actions = self._game.minimal_action_set()
        self.action_names = tuple(_ACTIONS[action] for action in self._actions)
        self.action_space = spaces.Discrete(len(self._actions))
        self.observation_space = spaces.Box(0, 1, tuple(self._game.state_shape()), bool)  # type: ignore[arg-type]
        self.render_mode = render_mode

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start a new game and forget the last action, which sticky actions would repeat."""
        super().reset(seed=seed)
        if seed is not None:
            self._game.seed(seed)
        self._game.reset()
        self._game.last_action = 0
        return self._observation(), {}

    def step(
        self, action: int | np.integer
    ) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Play one frame of the game."""
        reward, terminated = self._game.act(self._actions[int(action)])
        return self._observation(), float(reward), bool(terminated), False, {}

    def _observation(self) -> np.ndarray:
        return np.asarray(self._game.state(), np.bool_)

    def render(self) -> Any:
        """Return an image of the board; each kind of object has its own colour."""
        if self.render_mode != "rgb_array":
            return None
        import matplotlib

        state = self._observation()
        highest = np.max(state * np.arange(1, state.shape[-1] + 1), axis=-1)
        colours = matplotlib.colormaps["cubehelix"](np.linspace(0, 1, state.shape[-1] + 2)[:-1])
        picture = (colours[highest, :3] * 255).astype(np.uint8)
        return picture.repeat(_PIXELS, axis=0).repeat(_PIXELS, axis=1)


class MinAtarGames(Resolver):
    """Names such as `MinAtar/Breakout`; a version such as `-v1` is ignored."""

    listings: ClassVar = {
        PREFIX + game: Listing("minatar", Domain(-1.0, highest), "minatar", None)
        for game, highest in _HIGHEST.items()
    }

    def resolve(self, name: str) -> Entry | None:
        if not name.startswith(PREFIX):
            return None
        game = name.removeprefix(PREFIX).partition("-")[0]
        if game not in GAMES:
            raise unknown("MinAtar game", game, GAMES)
        return hosted_entry(PREFIX + game, partial(MinAtar, game), self.listings[PREFIX + game])
