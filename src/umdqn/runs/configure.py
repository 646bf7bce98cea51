"""From an environment, an algorithm, a preset and overrides to a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from umdqn.agents.algorithms import ALGORITHMS, Algorithm
from umdqn.envs.catalogue import find
from umdqn.envs.entry import Entry
from umdqn.envs.setup import Setup
from umdqn.envs.wrappers import wrapper_name
from umdqn.errors import UmdqnError, check, unknown
from umdqn.parts.keywords import read_keywords
from umdqn.parts.ranges import ranges
from umdqn.runs.build import check_loop
from umdqn.runs.config import Config
from umdqn.runs.domains import estimated_domain
from umdqn.runs.fields import DEFAULTS, KINDS, leaves, name_of, named_fields, override, read_part
from umdqn.runs.presets import PRESETS, Fields
from umdqn.runs.values import read_number
from umdqn.specs import Domain, EnvSpec, Keywords


def configure(
    env: str = "grid-world",
    agent: str = "umdqn-c",
    preset: str = "tuned",
    overrides: Mapping[str, Any] | None = None,
) -> Config:
    """Return the configuration of an agent on an environment.

    Fields come from the algorithm, then from the preset, then from `overrides`, which are given by
    dotted names (`{"replay.capacity": 5000}`) or nested (`{"replay": {"capacity": 5000}}`). Parts
    are given by name, as `module:Class`, or as instances.
    """
    _check_names(env, agent, preset)
    given = named_fields(overrides or {})
    algorithm, entry = ALGORITHMS[agent], find(env, _setup(given))
    given = _copies(entry) | given
    scopes = _scopes(preset, entry.spec)
    parts = _parts(algorithm, scopes, given, (entry.spec.name, agent))
    config = Config(
        env=entry.spec.name,
        agent=agent,
        preset=preset,
        discount=entry.spec.discount,
        domain=_domain(entry, given) if parts["support"].needs_domain else None,
        **parts,
    )
    follows = bool(given.get("policy"))
    fields = _algorithm_fields(algorithm, config) | _preset_fields(scopes, config, follows)
    # Parts that are given as objects are complete: only the user's own fields change them.
    whole = [kind for kind in KINDS if not isinstance(given.get(kind, ""), str)]
    fields = {path: value for path, value in fields.items() if path.split(".")[0] not in whole}
    rest = {path: value for path, value in given.items() if path not in KINDS}
    config = override(config, fields | rest)
    check_loop(config)
    return config


def _check_names(env: str, agent: str, preset: str) -> None:
    """Raise if the agent or the preset is unknown, or if an agent stands in place of `env`."""
    for name, value in (("agent", agent), ("preset", preset)):
        check(isinstance(value, str), name, value, "a name")
    if env in ALGORITHMS:
        raise UmdqnError(f"{env!r} is an agent: name the environment first, then the agent")
    for kind, name, table in (("agent", agent, ALGORITHMS), ("preset", preset, PRESETS)):
        if name not in table:
            raise unknown(kind, name, table)


def _copies(entry: Entry) -> Fields:
    """Return the number of copies that a vector environment has."""
    return {"num_envs": entry.copies} if entry.copies > 1 else {}


def _setup(given: dict[str, Any]) -> Setup:
    """Read how the environment is made; wrappers may be given as objects, which become names."""
    wrappers = given.get("wrappers", ())
    if isinstance(wrappers, str):
        wrappers = tuple(filter(None, wrappers.split(",")))
    wrappers = [wrappers] if callable(wrappers) else wrappers
    if "wrappers" in given:
        listed = isinstance(wrappers, list | tuple)
        check(listed, "wrappers", wrappers, "a list of names or of functions of an environment")
        given["wrappers"] = tuple(map(wrapper_name, wrappers))
    keywords = read_keywords("env_kwargs", given.get("env_kwargs", Keywords()))
    inner = {k.partition(".")[2]: v for k, v in given.items() if k.startswith("env_kwargs.")}
    keywords = read_keywords("env_kwargs", keywords.values | inner)
    return Setup(keywords, given.get("wrappers", ()))


def _scopes(preset: str, spec: EnvSpec) -> Mapping[str, Fields]:
    """Return what a preset says for the family of an environment, by scope."""
    scopes = PRESETS[preset].get(spec.family)
    if scopes is None:
        known = [name for name, families in PRESETS.items() if spec.family in families]
        raise unknown(f"preset for {spec.name}", preset, known)
    return scopes


def _parts(
    algorithm: Algorithm,
    scopes: Mapping[str, Fields],
    given: Mapping[str, Any],
    names: tuple[str, str],
) -> dict[str, Any]:
    """Return the parts with their default fields: naming a part does not undo the preset."""
    of_preset = {k: v for name in ("all", *names) for k, v in scopes.get(name, {}).items()}
    # A domain that is given fixes the support.
    implied = {} if given.get("domain") is None else {"support": "fixed"}
    defaults = {"support": DEFAULTS["support"]} | _parts_of(algorithm)
    chosen = defaults | _only_parts(of_preset) | implied | _only_parts(given)
    return {kind: read_part(kind, value) for kind, value in chosen.items()}


def _only_parts(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {path: value for path, value in fields.items() if path in KINDS}


def _parts_of(algorithm: Algorithm) -> dict[str, Any]:
    """Return the parts that an algorithm chooses, by kind."""
    named = {"representation": algorithm.representation, "metric": algorithm.metric}
    return named | _only_parts(algorithm.fields)


def _domain(entry: Entry, given: Mapping[str, Any]) -> Domain:
    """Return the environment's domain, or an estimate if neither it nor the user states one."""
    spec = entry.spec
    if spec.domain is not None or "domain" in given:
        return spec.domain or Domain(-1.0, 1.0)
    discount = read_number("discount", float, given.get("discount", spec.discount))
    ranges(Config)["discount"].check("discount", discount)
    return estimated_domain(entry, discount)


def _algorithm_fields(algorithm: Algorithm, config: Config) -> Fields:
    """Return an algorithm's fields, without those of parts that were exchanged."""
    names = DEFAULTS | _parts_of(algorithm)
    kept = {kind for kind in KINDS if name_of(kind, getattr(config, kind)) == names[kind]}
    fields = {k: v for k, v in algorithm.fields.items() if k not in KINDS}
    return {k: v for k, v in fields.items() if k.split(".")[0] not in set(KINDS) - kept}


def _preset_fields(scopes: Mapping[str, Fields], config: Config, follows: bool) -> Fields:
    """Return a preset's fields that concern a configuration and that its parts have.

    `follows`: it follows a fixed policy.
    """
    concerned = ["all", config.env, *(["policy"] if follows else [])]
    concerned += [f"{kind} {name_of(kind, getattr(config, kind))}" for kind in KINDS]
    concerned += [config.agent] if config.label == config.agent else []
    fields = {k: v for name in concerned for k, v in scopes.get(name, {}).items()}
    known = {path for path, _, _ in leaves(config)} - set(KINDS)
    return {path: value for path, value in fields.items() if path in known}
