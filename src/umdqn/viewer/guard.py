"""What stands before every request: Host, Origin, token, method, size; and headers of answers."""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import secrets
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from umdqn.errors import one_line

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("localhost", "127.0.0.1", "::1")
COOKIE = "umdqn-view"
# Requests name a run, a state and a few numbers.
_LONGEST_QUERY = 32_768

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Refused(Exception):
    """A request that is not answered."""

    def __init__(self, status: int, reason: str):
        super().__init__(reason)
        self.status = status


@dataclasses.dataclass(frozen=True)
class Guard:
    """Refuses requests that another site, or a stranger in the network, may have made.

    A page of another site can make the browser send requests to this server, under a host name that
    it controls: `Host` must be a name of this machine, and `Origin` this page. Numeric addresses
    cannot be such names. From other machines, every request needs the token.
    """

    app: App
    hosts: frozenset[str]
    """Names by which this server may be called."""
    token: str | None = None
    """What requests must present; None on the loopback address."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        answer = _Answer(send)
        try:
            login = self._admit(scope)
            if login:
                await answer.redirect(_without_token(scope), self._cookie(scope))
                return
            await self.app(scope, receive, answer.send)
        except Refused as refusal:
            await answer.refuse(refusal.status, str(refusal))
        except Exception as error:
            print(f"umdqn view: {one_line(error)}", file=sys.stderr)
            await answer.refuse(500, f"this went wrong: {one_line(error)}")

    def _admit(self, scope: Scope) -> bool:
        """Check a request; return whether it brings the token in its address, to be remembered."""
        headers = _Headers(scope)
        if scope["method"] not in ("GET", "HEAD"):
            raise Refused(405, "only GET and HEAD are answered")
        if headers.one("content-length") not in (None, "0") or headers.one("transfer-encoding"):
            raise Refused(413, "requests have no body here")
        if len(scope["query_string"]) > _LONGEST_QUERY:
            raise Refused(414, "the address is too long")
        host = headers.one("host")
        if host is None or not self._known(host):
            raise Refused(403, "the Host of this request is not a name of this server")
        origin = headers.one("origin")
        if origin is not None and origin != f"{scope['scheme']}://{host}":
            raise Refused(403, "the Origin of this request is another site")
        site = headers.one("sec-fetch-site")
        if (
            site not in (None, "same-origin", "none")
            and headers.one("sec-fetch-mode") != "navigate"
        ):
            raise Refused(403, "the request comes from another site")
        return self.token is not None and self._brings_token(scope, headers)

    def _known(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if self.token is not None and _is_address(name):
            return True
        return name.lower() in self.hosts

    def _brings_token(self, scope: Scope, headers: _Headers) -> bool:
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        if self._matches(query.get("token")):
            return True
        bearer = (headers.one("authorization") or "").removeprefix("Bearer ")
        if self._matches(bearer) or self._matches(_cookies(headers).get(self._cookie_name(scope))):
            return False
        raise Refused(401, "this page needs its token: open the address that umdqn view printed")

    def _matches(self, given: str | None) -> bool:
        known = (self.token or "").encode()
        return bool(known) and secrets.compare_digest((given or "").encode(), known)

    def _cookie_name(self, scope: Scope) -> str:
        # Cookies are shared by all ports of a machine.
        return f"{COOKIE}-{(scope.get('server') or ('', 0))[1]}"

    def _cookie(self, scope: Scope) -> str:
        return f"{self._cookie_name(scope)}={self.token}; Path=/; HttpOnly; SameSite=Strict"


class _Headers:
    """The headers of a request, each of which may come once."""

    def __init__(self, scope: Scope):
        self._pairs = scope["headers"]

    def one(self, name: str) -> str | None:
        found = [value for key, value in self._pairs if key == name.encode()]
        if len(found) > 1:
            raise Refused(400, f"the request has {len(found)} headers {name}")
        return found[0].decode("latin-1") if found else None


class _Answer:
    """Sends an answer with the headers that every answer has."""

    def __init__(self, send: Send):
        self._send, self._begun = send, False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            extra = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", []), *extra]}
        await self._send(message)

    async def refuse(self, status: int, reason: str) -> None:
        """Answer with one line of JSON, unless an answer has begun."""
        if not self._begun:
            await self._whole(status, [], json.dumps({"error": reason}).encode())

    async def redirect(self, location: str, cookie: str) -> None:
        """Send the browser to the same page without the token in its address."""
        headers = {"location": location, "set-cookie": cookie}
        await self._whole(303, [(n.encode(), v.encode()) for n, v in headers.items()], b"")

    async def _whole(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        kind = (b"content-type", b"application/json")
        start = {"type": "http.response.start", "status": status, "headers": [kind, *headers]}
        await self.send(start)
        await self.send({"type": "http.response.body", "body": body})


def _without_token(scope: Scope) -> str:
    pairs = parse_qsl(scope["query_string"].decode("latin-1"))
    rest = urlencode([(name, value) for name, value in pairs if name != "token"])
    return f"/?{rest}" if rest else "/"


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _cookies(headers: _Headers) -> dict[str, str]:
    try:
        found = SimpleCookie(headers.one("cookie") or "")
    except CookieError:
        return {}
    return {name: morsel.value for name, morsel in found.items()}
