"""Whether to import what a file of a run or of a sweep names: only with the user's consent.

Configurations name environments, parts and policies of users as `module:attribute`. Importing one
runs its code, and a run may come from anywhere. A name is imported if this process has imported it
already, if the user allows it, or if the file was signed with the key of this user and the module
still comes from the same place. SECURITY.md says what this protects from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from umdqn.envs.wrappers import name_and_arguments
from umdqn.errors import UmdqnError
from umdqn.parts.imports import allow, file_of, is_allowed
from umdqn.parts.objects import PREFIX
from umdqn.runs.files import read_json
from umdqn.runs.kinds import KINDS
from umdqn.runs.run_name import RunName
from umdqn.runs.signing import is_signed, sign

Data = Mapping[str, Any]


class Untrusted(UmdqnError):
    """A file from elsewhere names code that reading it would run."""


def imports_of(config: Data) -> dict[str, str]:
    """Return what a configuration, as JSON data, would import, by field."""
    found: dict[str, str] = {}
    for field, value in config.items():
        if field in KINDS and isinstance(value, Mapping):
            name, path = value.get("name"), value.get("class")
            if isinstance(name, str):
                foreign = KINDS[field].foreign(name, path)
                found |= {} if foreign is None else {field: str(foreign)}
            value = {key: each for key, each in value.items() if key not in ("name", "class")}
        if field == "env_kwargs" or (
            field == "policy" and isinstance(value, str) and RunName.read(value)
        ):
            continue
        if field == "wrappers" and isinstance(value, list):
            value = [name_and_arguments(text)[0] for text in value if isinstance(text, str)]
        found |= {
            path: text
            for path, text in _texts(field, value)
            if ":" in text and not text.startswith(PREFIX)
        }
    return found


def objects_of(config: Data) -> dict[str, str]:
    """Return the objects of another process that a configuration names, by field."""
    named = (pair for field, value in config.items() for pair in _texts(field, value))
    return {path: text for path, text in named if text.startswith(PREFIX)}


def _texts(field: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield all text in a value, with the path to each."""
    if isinstance(value, str):
        yield field, value
    elif isinstance(value, Mapping | list):
        for key, each in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _texts(f"{field}.{key}", each)


def signed(configs: Sequence[Data]) -> dict[str, Any]:
    """Return what a file says of the imports of its configurations, and this user's signature."""
    names = sorted({name for config in configs for name in imports_of(config).values()})
    if not names:
        return {}
    files = {name: file_of(name) for name in names}
    return {"imports": files, "signature": sign([list(configs), files])}


def check_trust(path: Path, configs: Sequence[Data], said: Data) -> None:
    """Raise `Untrusted` if reading configurations would import code that the user has not allowed.

    `said` is what `signed` had returned when the file was written.
    """
    wanted = {
        name: field
        for config in configs
        for field, name in imports_of(config).items()
        if not is_allowed(name)
    }
    files = said.get("imports")
    files = files if isinstance(files, Mapping) else {}
    if not wanted or (
        is_signed([list(configs), files], said.get("signature"))
        and all(file_of(name) in (None, files.get(name)) for name in wanted)
    ):
        return
    code = "; ".join(
        f"{field} {name!r} ({_places(files.get(name), file_of(name))})"
        for name, field in wanted.items()
    )
    raise Untrusted(
        f"{path} was not made by you on this machine, and reading it would import code: {code}; "
        "--trust allows it (in Python: trust=True)"
    )


def _places(then: Any, now: str | None) -> str:
    """Say where a module came from when a file was written, and where it comes from here."""
    here = "not found here" if now is None else f"here from {now}"
    return here if then is None or then == now else f"made with {then!r}, {here}"


def trust_run(path: Path) -> None:
    """Allow what a run names, and what the run names whose policy it follows."""
    seen: set[Path] = set()
    while path not in seen:
        seen.add(path)
        manifest = read_json(path / "manifest.json")
        config = manifest.get("config") if isinstance(manifest, Mapping) else None
        if not isinstance(config, Mapping):
            return
        allow(imports_of(config).values())
        policy = config.get("policy")
        followed = RunName.read(policy) if isinstance(policy, str) else None
        path = path if followed is None else followed.path
