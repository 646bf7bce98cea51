"""The server of `umdqn view`: a socket, a guard, and the application."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import os
import secrets
import socket
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import uvicorn

from umdqn.errors import UmdqnError, check, notice
from umdqn.viewer.app import application
from umdqn.viewer.guard import LOOPBACK, Guard
from umdqn.viewer.roots import Roots

PORT = 8765
# The page yields to training on the same machine.
_NICENESS = 10
_MOST_REQUESTS = 64
_LONGEST_HEADERS = 65_536


class Site(NamedTuple):
    """A server that is ready to run."""

    address: str
    """Where the page is, with the token if there is one."""
    roots: Roots
    server: uvicorn.Server
    taken: socket.socket

    def run(self) -> None:
        """Answer requests until the process is interrupted, or the site is stopped."""
        with contextlib.suppress(KeyboardInterrupt):
            self.server.run(sockets=[self.taken])

    def stop(self) -> None:
        """Let `run` return, from another thread."""
        self.server.should_exit = True


def site(paths: Sequence[Path], host: str = LOOPBACK[1], port: int = PORT) -> Site:
    """Prepare the page for some directories; raise if it cannot be served.

    Other addresses than the loopback one can be reached from the network: requests then need a
    token, which the address of the site contains.
    """
    check(0 <= port <= 65_535, "port", port, "from 0 to 65535; 0 takes any that is free")
    roots = Roots(paths)
    taken = _socket(host, port)
    token = None if _is_loopback(host) else secrets.token_urlsafe(24)
    names = {*LOOPBACK, host.lower()}
    if token is not None:
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    app = Guard(application(roots), frozenset(names), token)
    shown = f"[{host}]" if ":" in host else host
    shown = socket.gethostname() if host in ("0.0.0.0", "::") else shown
    address = f"http://{shown}:{taken.getsockname()[1]}/"
    address += f"?token={token}" if token else ""
    return Site(address, roots, _server(app), taken)


def _is_loopback(host: str) -> bool:
    if host == LOOPBACK[0]:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _socket(host: str, port: int) -> socket.socket:
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UmdqnError(f"--host {host}: unknown: {why}") from None
    taken = socket.socket(family, kind, number)
    if os.name == "posix":
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind(address)
        taken.listen(128)
    except OSError as error:
        taken.close()
        reason = (error.strerror or str(error)).lower()
        raise UmdqnError(
            f"--port {port} on {host}: {reason}; give another --port, or 0 for any that is free"
        ) from None
    return taken


def _server(app: Guard) -> uvicorn.Server:
    # Errors are answered to the request that caused them, and not logged.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_MOST_REQUESTS,
        h11_max_incomplete_event_size=_LONGEST_HEADERS,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


def yield_to_training() -> None:
    """Give this process a low priority, where the system has such."""
    if hasattr(os, "nice"):
        with contextlib.suppress(OSError):
            os.nice(_NICENESS)


def open_browser(address: str) -> None:
    """Open the page in the user's browser; say so if there is none."""
    try:
        opened = webbrowser.open(address)
    except webbrowser.Error:
        opened = False
    if not opened:
        notice("no browser was found: open the address in one yourself")
