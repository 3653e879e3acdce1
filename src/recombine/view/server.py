"""The server: pages, their scripts, and the JSON API below /api."""

from __future__ import annotations

import contextlib
import inspect
import json
import logging
import threading
from collections.abc import AsyncIterator, Callable
from importlib import resources
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from recombine.errors import BadInput, RecombineError, StoreError
from recombine.figures.embed import vega_bundle
from recombine.store.files import finite
from recombine.view.api import audit, compare, evidence, plan, run, runs, start, state
from recombine.view.guard import FRAMED, LARGEST_UPLOAD, Guard, TooLarge
from recombine.view.viewer import Viewer, inside

log = logging.getLogger(__name__)

STATIC = resources.files("recombine.view") / "static"

Answer = Callable[..., Any]


def make_app(store: Path, results: tuple[Path, ...], token: str, port: int) -> Starlette:
    """The application.

    Args:
        store: The folder of the store; it need not exist yet.
        results: Folders of exported results, for the Evidence page.
        token: The token that every request needs.
        port: The port that requests name in their Host header.

    Returns:
        A Starlette application. Its `state.viewer` is the viewer.
    """
    viewer = Viewer(store, results)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        # Making the bundle takes seconds: it is begun before the first figure needs it.
        threading.Thread(target=vega_bundle, daemon=True).start()
        yield
        await run_in_threadpool(viewer.close)

    routes = [
        Route("/", _page),
        Route("/static/vega.js", _vega),
        Mount("/static", StaticFiles(packages=[("recombine.view", "static")])),
        Route("/results/{folder:int}/{name:path}", _image),
        Route("/audits/{name}", _audit_page),
        Route("/api/tables", _upload, methods=["POST"]),
        *(Route(path, _json(function), methods=[method]) for method, path, function in API),
    ]
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[
            Middleware(Guard, token=token, port=port),
            Middleware(GZipMiddleware, minimum_size=2000, compresslevel=3),
        ],
        exception_handlers={RecombineError: _explain, HTTPException: _http_error, Exception: _unexpected},
    )
    app.state.viewer = viewer
    return app


API: tuple[tuple[str, str, Answer], ...] = (
    ("GET", "/api/state", state.state),
    ("GET", "/api/evidence", evidence.document),
    ("GET", "/api/evidence/{entry}/figures", evidence.figures),
    ("GET", "/api/evidence/{entry}/runs", evidence.runs),
    ("GET", "/api/columns", runs.columns),
    ("GET", "/api/runs", runs.rows),
    ("GET", "/api/groups", runs.groups),
    ("GET", "/api/plot", runs.plot),
    ("GET", "/api/runs/{run}", run.record),
    ("GET", "/api/runs/{run}/figures/{figure}", run.figure),
    ("GET", "/api/compare", compare.comparison),
    ("GET", "/api/sides", compare.sides),
    ("POST", "/api/audits", audit.begin),
    ("GET", "/api/audits/{job}", audit.progress),
    ("POST", "/api/plan", plan.made),
    ("GET", "/api/forms", start.forms),
    ("GET", "/api/forms/study/{study}", start.study_form),
    ("POST", "/api/forms/settings", start.settings_form),
    ("POST", "/api/dry-run", start.dry_run),
    ("POST", "/api/jobs", start.begin),
    ("GET", "/api/jobs", start.jobs),
    ("POST", "/api/jobs/{job}/stop", start.stop),
)
"""All paths of the API. A function takes what it needs by name: `viewer`, parts of the path, queries, or `body`."""


def _json(function: Answer) -> Callable[[Request], Any]:
    """An endpoint that answers with what a function returns, computed beside the server's loop."""
    names = inspect.signature(function).parameters

    async def endpoint(request: Request) -> Response:
        given: dict[str, Any] = {**request.query_params, **request.path_params}
        if "body" in names:
            given["body"] = await _body(request)
        given["viewer"] = request.app.state.viewer
        unknown = [name for name in given if name not in names and name != "viewer"]
        if unknown:
            raise BadInput(f"{request.url.path} takes no {unknown[0][:50]!r}.")
        for name, parameter in names.items():
            if name not in given and parameter.default is parameter.empty:
                raise BadInput(f"{request.url.path} needs {name!r}.")
        chosen = {name: given[name] for name in names if name in given}
        return JSONResponse(finite(await run_in_threadpool(function, **chosen)))

    return endpoint


async def _body(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise BadInput("The request is not JSON.") from None
    if not isinstance(body, dict):
        raise BadInput("The request is not a JSON object.")
    return body


def _page(_: Request) -> Response:
    return HTMLResponse((STATIC / "index.html").read_text(encoding="utf-8"))


def _vega(_: Request) -> Response:
    return Response(vega_bundle(), media_type="text/javascript", headers={"cache-control": "private, max-age=3600"})


def _image(request: Request) -> Response:
    viewer: Viewer = request.app.state.viewer
    number = request.path_params["folder"]
    if number >= len(viewer.results):
        raise BadInput("There is no such folder of results.")
    return FileResponse(inside(viewer.results[number], request.path_params["name"], ".png"))


def _audit_page(request: Request) -> Response:
    viewer: Viewer = request.app.state.viewer
    page = audit.page(viewer, request.path_params["name"])
    return FileResponse(page, media_type="text/html", headers={"content-security-policy": FRAMED})


async def _upload(request: Request) -> Response:
    viewer: Viewer = request.app.state.viewer
    body = await request.body()
    name = request.query_params.get("name", "table.csv")
    return JSONResponse(finite(await run_in_threadpool(audit.upload, viewer, name, body)))


def _explain(_: Request, error: Exception) -> Response:
    assert isinstance(error, RecombineError)
    status = 503 if isinstance(error, StoreError) else 400
    return JSONResponse({"error": error.message, "fix": error.fix}, status_code=status)


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = f"There is nothing at {request.url.path[:200]}." if error.status_code == 404 else error.detail
    return JSONResponse({"error": what, "fix": None}, status_code=error.status_code)


def _unexpected(_: Request, error: Exception) -> Response:
    if isinstance(error, TooLarge):
        return JSONResponse({"error": f"The request is larger than {LARGEST_UPLOAD:,} bytes.", "fix": None}, 413)
    if isinstance(error, OSError):
        return JSONResponse({"error": f"A file cannot be read: {error.strerror or error}.", "fix": None}, 503)
    if not isinstance(error, ClientDisconnect):
        log.exception("The viewer failed", exc_info=error)
    what = f"The viewer failed: {type(error).__name__}: {str(error)[:200]}"
    return JSONResponse({"error": what, "fix": "see the terminal of `recombine view`"}, status_code=500)
