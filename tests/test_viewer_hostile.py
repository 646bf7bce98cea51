"""Thousands of requests that no browser sends, to a server of its own process."""

import contextlib
import random
import shutil
import socket
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from umdqn.runs.run import Run
from viewing import SECRET, planted, process

NAMES = (
    "runs",
    "run",
    "curves",
    "open",
    "laws",
    "map",
    "exact",
    "episode",
    "picture",
    "calibration",
)

# Some requests are sound, and compile programs.
PATIENCE = 300


@pytest.fixture
def copy(small_run: Run, tmp_path: Path) -> Path:
    return planted(small_run, tmp_path)


def hostile(choice: random.Random, port: int) -> tuple[bytes, bool]:
    """Return a request that no browser sends, and whether it is a whole one."""
    up = choice.choice(
        ["../", "..%2f", "%2e%2e/", "....//", "..\\", "%c0%ae%c0%ae/", "..;/", "//", "\x00"]
    )
    target = choice.choice(["etc/passwd", "outside/secret", "run/manifest.json", "secret", ""])
    inside = up * choice.randrange(1, 9) + target
    junk = bytes(choice.randrange(256) for _ in range(choice.randrange(1, 200)))
    number = choice.choice(
        ["-1", "1e999", "nan", "9" * 400, "0x10", "1,1" * 99, "%00", "\u0661", "{}", ""]
    )
    query = urlencode(
        {
            "run": choice.choice(["run", inside, number]),
            "state": choice.choice(["1,1", number]),
            "step": number,
            "at": number,
            "episode": number,
            "seed": number,
            "field": inside,
            "points": number,
            "from": number,
        }
    )
    some = choice.sample(query.split("&"), choice.randrange(1, 9))
    path = choice.choice(
        [
            "/" + inside,
            "/static/" + inside,
            "/static/" + quote(inside, safe=""),
            "/api/" + inside,
            f"/api/{choice.choice(NAMES)}?" + "&".join(some),
            f"/api/{choice.choice(NAMES)}?run={quote(inside)}",
            f"http://evil.example/api/{choice.choice(NAMES)}",
            "/?" + "a" * choice.choice([10, 40_000, 90_000]),
            "*",
        ]
    )
    host = choice.choice([f"127.0.0.1:{port}"] * 8 + ["evil.example", "", "a" * 70_000, "\xff\xfe"])
    method = choice.choice(["GET"] * 8 + ["HEAD", "POST", "CONNECT", "get", "\x01"])
    lines = [
        f"{method} {path} HTTP/{choice.choice(['1.1', '1.1', '1.0', '9.9', ''])}",
        f"Host: {host}",
    ]
    extra = [
        "Origin: http://evil.example",
        "Content-Length: -1",
        "Content-Length: 99999999999",
        "Transfer-Encoding: chunked",
        "X: " + "y" * 70_000,
        'Cookie: =;=;"',
        "Range: bytes=0-99999999999",
        "no colon",
        f"Host: 127.0.0.1:{port}",
        "If-None-Match: *",
    ]
    lines += choice.sample(extra, choice.randrange(0, 3))
    whole = ("\r\n".join([*lines, "Connection: close", "", ""])).encode("latin-1", "replace")
    if choice.random() < 0.2:
        return choice.choice([junk, whole[: choice.randrange(len(whole))]]), False
    return whole, True


def answer_to(request: bytes, port: int) -> bytes:
    """Send a request and return all that comes back before the server closes."""
    with contextlib.closing(socket.create_connection(("127.0.0.1", port), PATIENCE)) as to:
        with contextlib.suppress(OSError):
            to.sendall(request)
        found = b""
        # A server that refuses while we still send resets the connection.
        with contextlib.suppress(ConnectionError):
            while piece := to.recv(65_536):
                found += piece
        return found


def abandon(request: bytes, port: int) -> None:
    """Send a part of a request, or noise, and hang up."""
    with contextlib.closing(socket.create_connection(("127.0.0.1", port), PATIENCE)) as to:
        to.sendall(request)


def bombard(copy: Path, count: int, seed: int) -> dict[bytes, int]:
    """Send hostile requests; return how often each status came back."""
    statuses: dict[bytes, int] = {}
    with process(copy.parent) as port:
        choice = random.Random(seed)
        for _ in range(count):
            request, whole = hostile(choice, port)
            if not whole:
                abandon(request, port)
                continue
            answer = answer_to(request, port)
            for leak in (SECRET.encode(), b"root:x:", b"Traceback", b'File "'):
                assert leak not in answer, (request, answer)
            status = [*answer.split(b" ", 2), b"", b""][1]
            # Without an answer: the headers were so long that the server hung up.
            assert status[:1] in (b"2", b"3", b"4") or len(request) > 60_000, (request, answer)
            statuses[status] = statuses.get(status, 0) + 1
        last = answer_to(b"GET /api/runs HTTP/1.0\r\nHost: localhost\r\n\r\n", port)
        assert last.count(b'"id":"run"') == 1
    return statuses


def test_hundreds_of_hostile_requests_are_refused(copy: Path):
    # Without checkpoints there is nothing to compile.
    shutil.rmtree(copy / "checkpoints")
    statuses = bombard(copy, 300, seed=0)
    assert statuses.keys() >= {b"200", b"400", b"403", b"404", b"405"}


@pytest.mark.torture
def test_thousands_of_hostile_requests_are_refused(copy: Path):
    statuses = bombard(copy, 5_000, seed=1)
    assert sum(statuses.values()) > 3_500
