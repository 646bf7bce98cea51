"""Optional packages: the error for one that is missing, and the command that installs it here."""

from __future__ import annotations

import importlib.util
import json
import shlex
import shutil
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlsplit

from umdqn.errors import UmdqnError

_NAME = "umdqn"


def missing(what: str, extra: str) -> UmdqnError:
    """Build the error for something that needs an extra that is not installed."""
    return UmdqnError(f"{what} needs an extra: {install_command(extra)}")


def require(what: str, extra: str, modules: Iterable[str]) -> None:
    """Raise unless the modules of an extra can be found; imports none of them."""
    if any(importlib.util.find_spec(module) is None for module in modules):
        raise missing(what, extra)


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation, whatever made it."""
    url, editable = _source()
    folder = url.startswith("file:") and not url.endswith(".whl")
    if folder:
        package = f"{unquote(urlsplit(url).path)}[{extra}]"
    else:
        package = f"{_NAME}[{extra}]" + (f" @ {url}" if url else "")
    return " ".join([_installer(), *(["-e"] if editable else []), f"'{package}'"])


def _installer() -> str:
    """Return the command up to the package, for the tool that made this environment."""
    prefix, python = Path(sys.prefix), shlex.quote(sys.executable)
    if (prefix / "pipx_metadata.json").exists():
        # pipx and uv cannot add an extra to an application: they install it again.
        return "pipx install --force"
    if (prefix / "uv-receipt.toml").exists():
        return "uv tool install --force"
    if _recorded("INSTALLER").strip() == "uv" or importlib.util.find_spec("pip") is None:
        return f"uv pip install --python {python}"
    found = shutil.which("pip")
    ours = found is not None and Path(found).parent == Path(sys.executable).parent
    return "pip install" if ours else f"{python} -m pip install"


def _source() -> tuple[str, bool]:
    """Return the URL that the package was installed from, "" for an index; whether editable."""
    try:
        found = json.loads(_recorded("direct_url.json"))
        tool = found.get("vcs_info", {}).get("vcs")
        url = f"{tool}+{found['url']}" if tool else str(found["url"])
        return url, bool(found.get("dir_info", {}).get("editable"))
    except (ValueError, AttributeError, KeyError, TypeError):
        return "", False


def _recorded(name: str) -> str:
    """Return a file that the installer wrote beside the package, or ""."""
    try:
        return distribution(_NAME).read_text(name) or ""
    except PackageNotFoundError:
        return ""
