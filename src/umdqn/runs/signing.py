"""Sign JSON data with the key of this user on this machine, and check such signatures."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import tempfile
from pathlib import Path
from typing import Any

from umdqn.errors import UmdqnError, notice
from umdqn.folders import user_folder
from umdqn.runs.files import open_regular

_LENGTH = 32


def sign(data: Any) -> str | None:
    """Return the signature of JSON data; None if this user has no place for a key."""
    path = _path()
    if path is None:
        return None
    with contextlib.suppress(OSError):
        if not path.exists():
            _make(path)
    key = _read(path)
    return None if key is None else _signature(key, data)


def is_signed(data: Any, signature: Any) -> bool:
    """Return whether a signature of JSON data was made with the key of this user."""
    path = _path()
    key = None if path is None else _read(path)
    if key is None or not isinstance(signature, str):
        return False
    return hmac.compare_digest(_signature(key, data).encode(), signature.encode())


def _path() -> Path | None:
    folder = user_folder("XDG_STATE_HOME", ".local/state")
    return None if folder is None else folder / "key"


def _signature(key: bytes, data: Any) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _read(path: Path) -> bytes | None:
    """Return the key, or None if there is none that only this user can read."""
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            status, key = os.fstat(file.fileno()), file.read(_LENGTH + 1)
    except (OSError, UmdqnError):
        return None
    own = os.name != "posix" or (status.st_uid == os.getuid() and not status.st_mode & 0o077)
    if own and len(key) == _LENGTH:
        return key
    notice(f"{path} is not used: a key must be readable by its user alone (chmod 600)")
    return None


def _make(path: Path) -> None:
    """Make the key in one step: processes that start together agree on one."""
    descriptor, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_LENGTH))
        with contextlib.suppress(FileExistsError):
            os.link(name, path)
    finally:
        os.unlink(name)
