"""Stands before every request: names this server goes by, size of bodies, who it is, and headers of every answer."""

from __future__ import annotations

from collections.abc import Collection
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.views.words import in_language
from app.web.base.access import Access, TooManyWrongTokens, Visitor
from app.web.base.phrases import choose_language

SESSION_COOKIE = "reviewloop_session"
LANGUAGE_COOKIE = "reviewloop_language"
MOST_BYTES = 6_000_000
"""Of a request's body."""

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_SAFE = ("GET", "HEAD", "OPTIONS", "TRACE")
_FREE = ("/healthz", "/sign-in")
_STATIC = "/static/"
_FOR_PROGRAMS = ("/api", "/metrics")


class TooLarge(Exception):
    """A body is larger than `MOST_BYTES`."""


class Guard:
    """Wraps the application.

    Args:
        names: values of the Host header that are answered; None: any (visitors have to sign in then).
    """

    def __init__(self, app: ASGIApp, access: Access, names: Collection[str] | None) -> None:
        self._app = app
        self._access = access
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on with its visitor in the scope's state."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with in_language(_language_of(scope)):
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        static = scope["path"].startswith(_STATIC)

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers["Cache-Control"] = "no-cache" if static else "no-store"
            await send(message)

        refusal = await self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, sent)
            return
        try:
            await self._app(scope, _bounded(receive), sent)
        except TooLarge:
            await _too_large()(scope, receive, sent)

    async def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        path, method = scope["path"], scope["method"]
        if self._names is not None and headers.get("host", "").lower() not in self._names:
            return PlainTextResponse(
                f"This server answers at {', '.join(sorted(self._names))} only.\n", status_code=421
            )
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length) > MOST_BYTES:
            return _too_large()
        origin = headers.get("origin")
        if method not in _SAFE and origin is not None and urlsplit(origin).netloc != headers.get("host"):
            return _refused(path, 403, "this request came from another site's page")
        address = (scope.get("client") or ("?",))[0]
        try:
            visitor = await self._access.visitor(
                session_of(headers), headers.get("authorization", ""), address
            )
        except TooManyWrongTokens as error:
            return _refused(path, 429, str(error))
        scope.setdefault("state", {})["visitor"] = visitor
        if path in _FREE or path.startswith(_STATIC):
            return None
        if visitor is None:
            return _unknown(scope)
        if method not in _SAFE and not visitor.may_act:
            return _refused(path, 403, "viewers may look; changes need the operators' token")
        return None


def visitor_of(scope: Scope) -> Visitor | None:
    """The sender of a request, as the guard found."""
    visitor: Visitor | None = scope["state"]["visitor"]
    return visitor


def _language_of(scope: Scope) -> str:
    """Return the language of the answer. Programs are answered in English."""
    if scope["path"].startswith(_FOR_PROGRAMS):
        return "en"
    headers, query = Headers(scope=scope), QueryParams(scope["query_string"])
    return choose_language(
        query.get("lang", ""), _cookie_of(headers, LANGUAGE_COOKIE), headers.get("accept-language", "")
    )


def session_of(headers: Headers) -> str:
    """Return the session cookie; an empty text if there is none."""
    return _cookie_of(headers, SESSION_COOKIE)


def _cookie_of(headers: Headers, name: str) -> str:
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return cookies[name].value if name in cookies else ""


def _unknown(scope: Scope) -> Response:
    path = scope["path"]
    if path.startswith(_FOR_PROGRAMS):
        sent = Headers(scope=scope).get("authorization", "")
        wrong = "this is no token of this dashboard" if sent else "send a token"
        detail = f"{wrong}: Authorization: Bearer TOKEN"
        return JSONResponse({"detail": detail}, 401, {"WWW-Authenticate": "Bearer"})
    query = scope["query_string"].decode("latin-1")
    return RedirectResponse(
        f"/sign-in?next={quote(path + ('?' + query if query else ''), safe='')}", status_code=303
    )


def _refused(path: str, status: int, why: str) -> Response:
    if path.startswith(_FOR_PROGRAMS):
        return JSONResponse({"detail": why}, status)
    return PlainTextResponse(f"Refused: {why}.\n", status)


def _too_large() -> Response:
    return JSONResponse({"detail": f"a request may have {MOST_BYTES:,} bytes at most"}, 413)


def _bounded(receive: Receive) -> Receive:
    taken = 0

    async def receiving() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > MOST_BYTES:
            raise TooLarge
        return message

    return receiving
