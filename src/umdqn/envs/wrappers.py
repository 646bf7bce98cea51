"""Gymnasium's wrappers by name, and those that users name `module:Class`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv

from umdqn.errors import InvalidField, UmdqnError, check, one_line, unknown
from umdqn.parts.imports import load_attribute
from umdqn.parts.keywords import read_pair
from umdqn.parts.objects import PREFIX, keep, recall

_KIND = "wrapper"
_GYMNASIUM = "gymnasium.wrappers"
_OWN = "umdqn.envs.wrappers"

WRAPPERS = {
    "atari-preprocessing": f"{_GYMNASIUM}:AtariPreprocessing",
    "clip-observation": f"{_OWN}:ClipObservation",
    "clip-reward": f"{_GYMNASIUM}:ClipReward",
    "delay-observation": f"{_GYMNASIUM}:DelayObservation",
    "discretize-action": f"{_GYMNASIUM}:DiscretizeAction",
    "discretize-observation": f"{_GYMNASIUM}:DiscretizeObservation",
    "dtype-observation": f"{_GYMNASIUM}:DtypeObservation",
    "filter-observation": f"{_GYMNASIUM}:FilterObservation",
    "flatten-observation": f"{_GYMNASIUM}:FlattenObservation",
    "frame-stack": f"{_GYMNASIUM}:FrameStackObservation",
    "grayscale": f"{_GYMNASIUM}:GrayscaleObservation",
    "loose-bounds": f"{_OWN}:LooseBounds",
    "max-and-skip": f"{_GYMNASIUM}:MaxAndSkipObservation",
    "render-observation": f"{_GYMNASIUM}:AddRenderObservation",
    "repeat-action": f"{_GYMNASIUM}:RepeatAction",
    "rescale-observation": f"{_GYMNASIUM}:RescaleObservation",
    "reshape-observation": f"{_GYMNASIUM}:ReshapeObservation",
    "resize-observation": f"{_GYMNASIUM}:ResizeObservation",
    "sticky-action": f"{_GYMNASIUM}:StickyAction",
    "time-aware": f"{_GYMNASIUM}:TimeAwareObservation",
    "time-limit": f"{_GYMNASIUM}:TimeLimit",
}
"""Wrappers by the names that users type."""

_INSTEAD = {
    "normalize-observation": "normalise_observations, whose statistics are part of checkpoints",
    "normalize-reward": "support 'learned', which scales returns and keeps laws in your units",
}
# Wrappers whose running statistics would be lost on resume, and would make laws untrue.
_REFUSED = {
    "NormalizeObservation": _INSTEAD["normalize-observation"],
    "NormalizeReward": _INSTEAD["normalize-reward"],
}


class ClipObservation(gymnasium.ObservationWrapper):
    """Clips observations to the bounds of their Box."""

    def observation(self, observation: Any) -> Any:
        """Return the observation inside of its bounds."""
        space = _box(self.env)
        return np.clip(observation, space.low, space.high).astype(space.dtype)


class LooseBounds(gymnasium.ObservationWrapper):
    """Lifts the bounds of observations, for environments that leave them."""

    def __init__(self, env: gymnasium.Env):
        super().__init__(env)
        space = _box(env)
        kind: Any = space.dtype
        info: Any = None if kind.kind == "f" else np.iinfo(kind)
        low, high = (-np.inf, np.inf) if info is None else (info.min, info.max)
        self.observation_space = spaces.Box(low, high, space.shape, kind)

    def observation(self, observation: Any) -> Any:
        """Return the observation as it is."""
        return observation


def _box(env: gymnasium.Env) -> spaces.Box:
    space = env.observation_space
    if not isinstance(space, spaces.Box) or np.dtype(space.dtype).kind not in "fiu":
        raise UmdqnError(f"it takes observations in a Box of numbers, not {space}")
    return space


def wrapper_name(wrapper: Any) -> str:
    """Return the name of a wrapper that is given by name, as a class or as a function."""
    if isinstance(wrapper, str):
        return wrapper
    check(callable(wrapper), "wrappers", wrapper, "names, or functions of an environment")
    return keep(_KIND, wrapper)


def wrapped(make: Callable[..., gymnasium.Env], names: Sequence[str]) -> Callable[..., Any]:
    """Return a function that makes an environment inside of wrappers, the first one innermost."""
    layers = [_layer(name) for name in names]

    def made(**keywords: Any) -> Any:
        env = make(**keywords)
        if isinstance(env, VectorEnv):
            # They go around each of its members.
            return env
        for name, layer in zip(names, layers, strict=True):
            env = _applied(name, layer, env)
        return env

    return made if layers else make


def _applied(name: str, layer: Callable[[gymnasium.Env], Any], env: gymnasium.Env) -> Any:
    try:
        outer = layer(env)
    except Exception as error:
        raise UmdqnError(
            f"wrapper {name!r} cannot be put around {env}: {one_line(error)}"
        ) from error
    if not isinstance(outer, gymnasium.Env):
        raise UmdqnError(f"wrapper {name!r} made {type(outer).__name__}, not an Env")
    return outer


def _layer(text: str) -> Callable[[gymnasium.Env], Any]:
    """Return the function of an environment that a wrapper's text means."""
    name, arguments = name_and_arguments(text)
    keywords = dict(read_pair("wrappers", part) for part in arguments)
    return partial(_found(name), **keywords) if keywords else _found(name)


def name_and_arguments(text: str) -> tuple[str, list[str]]:
    """Take `NAME:key=value:key=value` apart; the name may be `module:attribute`."""
    segments = text.split(":")
    count = next((i for i, part in enumerate(segments) if "=" in part), len(segments))
    return ":".join(segments[:count]), segments[count:]


def _found(name: str) -> Callable[..., Any]:
    if name in _INSTEAD:
        raise InvalidField("wrappers", name, f"use {_INSTEAD[name]}")
    path = WRAPPERS.get(name, name)
    if name.startswith(PREFIX):
        found = recall(_KIND, name)
    elif ":" in path:
        found = load_attribute(path, f"{_KIND} {name!r}")
    else:
        raise unknown(_KIND, name, WRAPPERS)
    if getattr(found, "__module__", "").startswith(_GYMNASIUM) and found.__name__ in _REFUSED:
        raise InvalidField("wrappers", name, f"use {_REFUSED[found.__name__]}")
    check(callable(found), "wrappers", name, "the name of a class or a function")
    return found
