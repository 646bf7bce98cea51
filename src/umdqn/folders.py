"""Folders for files of the user that belong to no run: the cache and the signing key."""

from __future__ import annotations

import os
from pathlib import Path


def user_folder(variable: str, usual: str) -> Path | None:
    """Return this user's folder for umdqn, which is made if needed; None if there can be none.

    An environment variable names the place, or it is `usual` in the home directory. Containers
    often run as a user without one.
    """
    named = os.environ.get(variable, "")
    try:
        # The standard of such variables ignores paths that are not absolute.
        base = Path(named) if os.path.isabs(named) else Path.home() / usual
        folder = base / "umdqn"
        if not folder.is_absolute():
            return None
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None
