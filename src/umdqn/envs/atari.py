"""Atari 2600 games on the Arcade Learning Environment (GPL, therefore an extra).

All eight wrappers of the paper's appendix D: images of 84 x 84 grey pixels, normalised by the
network; rewards clipped for learning only; episodes that end when all lives are lost; up to 30
NOOPs at their start; sticky actions with probability 0.25; each action repeated for 4 frames, with
the maximum of the last two; stacks of 4.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from umdqn.envs.entry import Entry, Listing, Resolver
from umdqn.envs.hosted import HostEnv
from umdqn.errors import unknown
from umdqn.extras import missing
from umdqn.specs import Domain, EnvSpec, Observation

PREFIX = "ALE/"
DOMAINS = {"Pong": (-5.0, 5.0), "Boxing": (-1.0, 10.0), "Freeway": (-1.0, 10.0)}
"""The paper's domains, by game."""
_STACK, _SIDE, _SKIP = 4, 84, 4
_MOST_FRAMES = 108_000


def _library() -> Any:
    try:
        import ale_py
        import ale_py.roms
        import ale_py.vector_env
    except ImportError:
        raise missing("Atari", "atari") from None
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    return ale_py


def title_and_rom(game: str) -> tuple[str, str]:
    """Return the canonical name of a game such as `spaceinvaders-v5`, and the id of its ROM."""
    roms = _library().roms.get_all_rom_ids()
    known = {"".join(word.title() for word in rom.split("_")): rom for rom in roms}
    by_letters = {title.lower(): title for title in known}
    asked = game.partition("-")[0]
    title = by_letters.get(asked.lower())
    if title is None:
        raise unknown("Atari game", asked, known)
    return title, known[title]


def atari_spec(game: str) -> EnvSpec:
    """Return the specification of a game."""
    library = _library()
    interface = library.ALEInterface()
    title, rom = title_and_rom(game)
    interface.loadROM(library.roms.get_rom_path(rom))
    actions = tuple(action.name for action in interface.getMinimalActionSet())
    return EnvSpec(
        name=PREFIX + title,
        family="atari",
        num_actions=len(actions),
        observation=Observation((_STACK, _SIDE, _SIDE), "uint8", (0.0,), (255.0,), _STACK),
        discount=0.99,
        domain=Domain(*DOMAINS[title]) if title in DOMAINS else None,
        time_limit=_MOST_FRAMES // _SKIP,
        action_names=actions,
        reward_clip=1.0,
    )


class AtariEnvs(HostEnv):
    """Copies of a game; rewards are not clipped."""

    def __init__(self, game: str, copies: int = 1):
        from gymnasium.vector import AutoresetMode

        super().__init__(atari_spec(game), copies)
        # One vector environment per copy, so that copies reset and step independently.
        self._envs = [
            _library().vector_env.AtariVectorEnv(
                title_and_rom(game)[1],
                1,
                num_threads=1,
                max_num_frames_per_episode=_MOST_FRAMES,
                repeat_action_probability=0.25,
                autoreset_mode=AutoresetMode.NEXT_STEP,
                img_height=_SIDE,
                img_width=_SIDE,
                stack_num=_STACK,
                frameskip=_SKIP,
                noop_max=30,
                episodic_life=False,
                reward_clipping=False,
                use_fire_reset=False,
            )
            for _ in range(copies)
        ]
        self._picture = np.zeros((_SIDE, _SIDE), np.uint8)

    def _begin(self, copy: int, seed: int) -> np.ndarray:
        observation, _ = self._envs[copy].reset(seed=np.array([seed]))
        return self._seen(copy, observation)

    def _advance(self, actions: dict[int, int]) -> dict[int, tuple[np.ndarray, float, bool, bool]]:
        for copy, action in actions.items():
            self._envs[copy].send(np.array([action], np.int32))
        answers = {}
        for copy in actions:
            observation, reward, terminated, truncated, _ = self._envs[copy].recv()
            ends = bool(terminated[0]), bool(truncated[0])
            answers[copy] = (self._seen(copy, observation), float(reward[0]), *ends)
        return answers

    def _seen(self, copy: int, observation: np.ndarray) -> np.ndarray:
        if copy == 0:
            self._picture = observation[0, -1]
        return observation[0].copy()

    def render(self) -> np.ndarray | None:
        return np.stack([self._picture] * 3, axis=2).repeat(4, axis=0).repeat(4, axis=1)


class AtariGames(Resolver):
    """Names such as `ALE/Pong`, in any case; a version such as `-v5` is ignored."""

    listings: ClassVar = {
        PREFIX + game: Listing("atari", Domain(*domain), "atari", None)
        for game, domain in DOMAINS.items()
    }

    def resolve(self, name: str) -> Entry | None:
        if not name.startswith(PREFIX):
            return None
        game = name.removeprefix(PREFIX)
        return Entry(atari_spec(game), None, partial(AtariEnvs, game), partial(AtariEnvs, game))
