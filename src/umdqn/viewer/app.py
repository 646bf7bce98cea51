"""The server's addresses: the page, its files, and the data that it shows."""

from __future__ import annotations

import asyncio
import hashlib
import json
import mimetypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from umdqn.errors import UmdqnError
from umdqn.viewer.asked import Asked
from umdqn.viewer.library import Library
from umdqn.viewer.numbers import finite
from umdqn.viewer.roots import NotFound, Roots

if TYPE_CHECKING:
    from umdqn.viewer.models import Models

_INDEX = "index.html"
_THREADS = ("files", "laws", "exact", "long")
_MODELS = {
    "open": "laws",
    "laws": "laws",
    "map": "exact",
    "exact": "exact",
    "episode": "long",
    "picture": "long",
    "calibration": "long",
}
"""The thread of each question about laws."""

Question = Callable[[Asked], Any]


class Service:
    """Answers questions in threads: for files, for laws, for exact ones, and for what takes long.

    Each thread does one thing at a time, so that the page never takes more than its share of a
    machine on which something trains, and laws do not wait for episodes.
    """

    def __init__(self, roots: Roots):
        self._roots, self._library = roots, Library(roots)
        self._threads = {name: ThreadPoolExecutor(1, name) for name in _THREADS}

    @cached_property
    def _models(self) -> Models:
        # JAX takes seconds to import, and the list of runs needs none of it.
        from umdqn.loops.machine import keep_compiled_programs
        from umdqn.viewer.models import Models

        keep_compiled_programs()
        return Models(self._roots)

    def routes(self) -> list[Route]:
        """Return the addresses of all questions."""
        library = {name: getattr(self._library, name) for name in ("runs", "run", "curves")}
        asked = [self._route(name, "files", question) for name, question in library.items()]
        models = {name: self._of_models(name) for name in _MODELS}
        return asked + [self._route(name, _MODELS[name], models[name]) for name in models]

    def _of_models(self, name: str) -> Question:
        return lambda asked: getattr(self._models, name)(asked)

    def _route(self, name: str, thread: str, question: Question) -> Route:
        async def answer(request: Request) -> Response:
            asked = Asked(request.query_params.multi_items())
            loop = asyncio.get_running_loop()
            try:
                found = await loop.run_in_executor(self._threads[thread], question, asked)
            except UmdqnError as error:
                status = 404 if isinstance(error, NotFound) else 400
                return JSONResponse({"error": str(error)}, status)
            except OSError as error:
                # Files of a run that trains come and go.
                return JSONResponse({"error": f"a file is gone: {error.strerror}"}, 404)
            if isinstance(found, bytes):
                return _tagged(request, found, "image/png")
            return _tagged(request, _encoded(found), "application/json")

        return Route(f"/api/{name}", answer)


def _encoded(data: Any) -> bytes:
    # ASCII only: names of files may have characters that are no text.
    try:
        return json.dumps(data, allow_nan=False, separators=(",", ":")).encode()
    except ValueError:
        return _encoded(finite(data))


def _tagged(request: Request, body: bytes, kind: str) -> Response:
    """Return a body, or "not modified" to a browser that has the same already."""
    tag = f'"{hashlib.sha256(body).hexdigest()[:24]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=kind, headers=headers)


def _static() -> dict[str, tuple[bytes, str]]:
    """Read the files of the page, by name, with their types."""
    mimetypes.add_type("text/javascript", ".js")
    found = {}
    for file in resources.files("umdqn.viewer").joinpath("static").iterdir():
        kind = mimetypes.guess_type(file.name)[0]
        if kind is not None:
            found[file.name] = (file.read_bytes(), kind)
    return found


def application(roots: Roots) -> Starlette:
    """Return the application that shows the runs below some roots."""
    service, files = Service(roots), _static()

    async def static(request: Request) -> Response:
        name = request.path_params.get("name", _INDEX)
        if name not in files:
            raise HTTPException(404)
        body, kind = files[name]
        return _tagged(request, body, kind)

    async def missing(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": "there is nothing at this address"}, 404)

    pages = [Route("/", static), Route("/static/{name}", static)]
    found = Starlette(routes=[*pages, *service.routes()], exception_handlers={404: missing})
    # Addresses are exact: a redirection would repeat what a request says of its host.
    found.router.redirect_slashes = False
    return found
