"""A served page for tests, over real HTTP on the loopback address."""

import contextlib
import http.client
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from umdqn.runs.run import Run
from umdqn.viewer.server import Site, site

SECRET = "the-secret-outside"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Served:
    """A running page, and requests to it."""

    def __init__(self, page: Site):
        self.page = page
        self.port = urlsplit(page.address).port
        self.address = f"http://127.0.0.1:{self.port}/"

    def request(self, path: str, method: str = "GET", **headers: str) -> Answer:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, 120)) as to:
            to.request(method, path, headers=names)
            answer = to.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())

    def ask(self, name: str, **query: Any) -> Any:
        answer = self.request(f"/api/{name}?{urlencode(query, doseq=True)}")
        assert answer.status == 200, answer.body
        return answer.json

    def refusal(self, name: str, **query: Any) -> str:
        answer = self.request(f"/api/{name}?{urlencode(query, doseq=True)}")
        assert answer.status in (400, 404), answer
        assert "\n" not in answer.json["error"]
        return answer.json["error"]


@contextlib.contextmanager
def served(paths: Sequence[Path], host: str = "127.0.0.1") -> Iterator[Served]:
    page = site(paths, host, 0)
    thread = threading.Thread(target=page.run)
    thread.start()
    try:
        yield Served(page)
    finally:
        page.stop()
        thread.join(30)
        assert not thread.is_alive()


@contextlib.contextmanager
def process(directory: Path) -> Iterator[int]:
    """Serve a directory from a process of its own, which may print nothing but its greeting."""
    command = [sys.executable, "-m", "umdqn", "view", str(directory), "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as server:
        try:
            assert server.stdout is not None
            yield int(server.stdout.readline().strip().rstrip("/").rpartition(":")[2])
        finally:
            server.terminate()
            said = server.communicate(timeout=60)[1]
    assert len(said.splitlines()) == 1, said


def contents(path: Path) -> dict[str, tuple[int, bytes]]:
    """Return every file below a directory, with its time of change and its bytes."""
    return {
        str(file.relative_to(path)): (file.lstat().st_mtime_ns, file.read_bytes())
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


def planted(run: Run, place: Path) -> Path:
    """Copy a run into a directory of runs, and put a secret beside that directory."""
    shutil.copytree(run.path, place / "runs" / "run")
    (place / "outside").mkdir()
    (place / "outside" / "secret").write_text(SECRET)
    return place / "runs" / "run"
