"""The dashboard as an ASGI application: pages, API, metrics and error pages."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from app.run.version import VERSION
from app.views.loop_state import Situation
from app.views.words import describe, name_text, translate
from app.web import metrics
from app.web.address import split_public
from app.web.api import acting, reading
from app.web.api import insight as insight_api
from app.web.base.context import PageRequest, WebContext
from app.web.base.forms import describe_errors, explain_error, find_page, keep_typed
from app.web.base.guard import Guard
from app.web.base.query import check_filters
from app.web.base.under_path import UnderPath, inner_path
from app.web.pages import (
    drafts,
    failed,
    imports,
    insight,
    matrix,
    nodes,
    overview,
    phrases,
    products,
    reviews,
    schedules,
    session,
    sites,
)
from splitter.errors import InputError
from tasks.domain.errors import StoreFailed, TaskError, Unstorable, WrongRevision

_log = logging.getLogger(__name__)

_PAGES = (
    session,
    overview,
    matrix,
    failed,
    reviews,
    products,
    insight,
    phrases,
    drafts,
    imports,
    schedules,
    nodes,
    sites,
    metrics,
)


def make_application(context: WebContext, hosts: Sequence[str], root_path: str) -> ASGIApp:
    """Return the application.

    Args:
        root_path: path under which a proxy serves the dashboard; empty for the root.
        hosts: accepted names in the Host header; "*" accepts any.
    """
    app = FastAPI(
        title="reviewloop",
        version=VERSION,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        description="What the dashboard shows and does, for programs.",
    )
    app.state.context = context
    for page in _PAGES:
        app.include_router(page.router, include_in_schema=False, dependencies=[Depends(check_filters)])
    for part in (reading, acting, insight_api):
        app.include_router(part.router, dependencies=[Depends(check_filters)])
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")
    app.add_api_route("/healthz", _alive, include_in_schema=False)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _wrong_request)
    for wrong in (TaskError, InputError):
        app.add_exception_handler(wrong, _wrong_input)
    app.add_exception_handler(Unstorable, _unstorable)
    for away in (StoreFailed, WrongRevision):
        app.add_exception_handler(away, _store_away)
    settings = context.settings
    guard = Guard(app, context.access, hosts, split_public(settings.web_address)[0])
    proxies = [str(network) for network in settings.trusted_proxies]
    return UnderPath(
        ProxyHeadersMiddleware(guard, proxies),  # type: ignore[arg-type]
        root_path,
        settings.trusted_proxies,
        _list_names(),
    )


def _list_names() -> set[str]:
    """Return the first components of the paths of all routes."""
    paths = [getattr(route, "path", "") for page in _PAGES for route in page.router.routes]
    return {path.split("/")[1] for path in paths if path} | {"api", "static", "healthz", ""}


async def _alive() -> PlainTextResponse:
    return PlainTextResponse("ok\n")


def _failure(request: Request, status: int, why: str) -> Response:
    if inner_path(request.scope).startswith("/api"):
        return JSONResponse({"detail": why}, status)
    return PageRequest(request).html("error.html", status=status, status_code=status, why=why)


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = _failure(request, error.status_code, translate(str(error.detail)))
    answer.headers.update(error.headers or {})
    return answer


async def _wrong_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    if inner_path(request.scope).startswith("/api"):
        places = (".".join(map(str, one["loc"][1:])) for one in error.errors())
        said = map(name_text, places, map(describe, map(explain_error, error.errors())))
        return _failure(request, 422, "; ".join(said))
    return await _refuse_form(request, 422, describe_errors(error.errors()))


async def _wrong_input(request: Request, error: Exception) -> Response:
    if type(error).__name__.startswith("Unknown"):
        return _failure(request, 404, describe(error))
    if isinstance(error, TaskError):
        return _failure(request, 409, describe(error))
    return await _refuse_form(request, 400, describe(error))


async def _refuse_form(request: Request, status: int, why: str) -> Response:
    """Show the page of a refused form again, with the typed values and the reason.

    Without a page, show only the reason.
    """
    show = find_page(request)
    if show is None:
        return _failure(request, status, why)
    page = PageRequest(request)
    keep_typed(page, await request.form(), why)
    try:
        answer = await run_in_threadpool(partial(show, page, **request.path_params))
    except (HTTPException, InputError, TaskError):
        return _failure(request, status, why)
    answer.status_code = status
    return answer


async def _unstorable(request: Request, error: Exception) -> Response:
    _log.warning("the store refused a value: %s", error)
    return await _refuse_form(request, 400, translate("The database can't store a value of this request."))


def _store_away(request: Request, error: Exception) -> Response:
    _log.warning("the store did not answer: %s", error)
    return _failure(request, 503, translate(Situation.DATABASE_AWAY.sentence))
