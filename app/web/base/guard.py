"""Check every request (host name, size, origin, visitor), and add security headers to every response."""

from __future__ import annotations

from collections.abc import Sequence
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.middleware.sessions import SessionMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.views.words import LANGUAGES, describe, find_language, switch_language, translate
from app.web.base.access import SESSION_S, Access, TooManyWrongTokens, Visitor
from app.web.base.under_path import inner_path

SESSION_COOKIE = "reviewloop_session"
LANGUAGE_COOKIE = "reviewloop_language"
MOST_BYTES = 6_000_000
"""Maximum number of bytes of a request's body."""

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
_OWN_SITE = ("same-origin", "none")
"""Accepted values of Sec-Fetch-Site: a page of the dashboard, or a person who entered an address."""
_FREE = ("/healthz", "/sign-in")
_STATIC = "/static/"
_FOR_PROGRAMS = ("/api", "/metrics")


class TooLarge(Exception):
    """The body of a request is larger than `MOST_BYTES`."""


class Guard:
    """ASGI middleware that lets only allowed requests through to the application.

    Args:
        hosts: accepted names in the Host header; "*" accepts any (visitors must sign in then).
        origin: public origin of a dashboard behind a proxy, for example https://example.com; empty without a proxy.
    """

    def __init__(self, app: ASGIApp, access: Access, hosts: Sequence[str], origin: str) -> None:
        self._app = app
        self._access = access
        self._origin = origin
        self._inside = TrustedHostMiddleware(self._open_session, hosts, www_redirect=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or store its visitor in the scope's state and pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        static = inner_path(scope).startswith(_STATIC)

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers["Cache-Control"] = "no-cache" if static else "no-store"
            await send(message)

        with switch_language(_language_of(scope)):
            await self._inside(scope, receive, sent)

    async def _open_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the session cookie of a request. A cookie is valid only for the path and the scheme of the request."""
        sessions = SessionMiddleware(
            self._answer,
            self._access.key,
            SESSION_COOKIE,
            int(SESSION_S),
            path=scope.get("root_path") or "/",
            same_site="strict",
            https_only=scope["scheme"] == "https" or self._origin.startswith("https:"),
        )
        await sessions(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = await self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        try:
            await self._app(scope, _limit_body(receive), send)
        except TooLarge:
            await _too_large()(scope, receive, send)

    async def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        path, method = inner_path(scope), scope["method"]
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length) > MOST_BYTES:
            return _too_large()
        if method not in _SAFE and (why := self._find_other_site(headers)):
            return _refuse(path, 403, why)
        address = (scope.get("client") or ("?",))[0]
        try:
            visitor = await self._access.visitor(scope["session"], headers.get("authorization", ""), address)
        except TooManyWrongTokens as error:
            return _refuse(path, 429, describe(error))
        scope.setdefault("state", {})["visitor"] = visitor
        if path in _FREE or path.startswith(_STATIC):
            return None
        if visitor is None:
            return _unknown(scope)
        if method not in _SAFE and not visitor.may_act:
            return _refuse(path, 403, translate("viewers may look; changes need the operators' token"))
        return None

    def _find_other_site(self, headers: Headers) -> str:
        """Return why a change seems to come from a page of another site, as a sentence; empty if it does not.

        Browsers send Origin with every change, and Sec-Fetch-Site over secure connections. Pages can't set these
        headers. A request without both comes from a program, and pages of other sites can't start programs.
        """
        if headers.get("sec-fetch-site", "same-origin") not in _OWN_SITE:
            return translate("this request came from another site's page")
        origin = headers.get("origin")
        host = headers.get("host", "")
        if origin is None or origin == self._origin:
            return ""
        if not self._origin and urlsplit(origin).netloc == host:
            return ""
        return translate(
            "this request came from a page of {origin}, and the dashboard is at {own}; behind a proxy set "
            "REVIEWLOOP_WEB_ADDRESS (docs/proxy.md)",
            origin=origin[:200],
            own=self._origin or host,
        )


def visitor_of(scope: Scope) -> Visitor | None:
    """Return the visitor that the guard identified for a request; `None` if the visitor is not signed in."""
    visitor: Visitor | None = scope["state"]["visitor"]
    return visitor


def _language_of(scope: Scope) -> str:
    """Return the language code of the response. Programs get English."""
    if inner_path(scope).startswith(_FOR_PROGRAMS):
        return "en"
    headers, query = Headers(scope=scope), QueryParams(scope["query_string"])
    return choose_language(
        query.get("lang", ""), _cookie_of(headers, LANGUAGE_COOKIE), headers.get("accept-language", "")
    )


def _cookie_of(headers: Headers, name: str) -> str:
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return cookies[name].value if name in cookies else ""


def _unknown(scope: Scope) -> Response:
    path = inner_path(scope)
    if path.startswith(_FOR_PROGRAMS):
        sent = Headers(scope=scope).get("authorization", "")
        wrong = "this is no token of this dashboard" if sent else "send a token"
        detail = f"{wrong}: Authorization: Bearer TOKEN"
        return JSONResponse({"detail": detail}, 401, {"WWW-Authenticate": "Bearer"})
    query = scope["query_string"].decode("latin-1")
    wanted = quote(f"{path}?{query}" if query else path, safe="")
    return RedirectResponse(f"{scope.get('root_path', '')}/sign-in?next={wanted}", status_code=303)


def _refuse(path: str, status: int, why: str) -> Response:
    if path.startswith(_FOR_PROGRAMS):
        return JSONResponse({"detail": why}, status)
    return PlainTextResponse(translate("Refused: {why}.", why=why) + "\n", status)


def _too_large() -> Response:
    return JSONResponse({"detail": f"a request may have {MOST_BYTES:,} bytes at most"}, 413)


def _limit_body(receive: Receive) -> Receive:
    taken = 0

    async def receiving() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > MOST_BYTES:
            raise TooLarge
        return message

    return receiving


def choose_language(query: str, cookie: str, accepted: str) -> str:
    """Return the language code for a request: from the query, else from the cookie, else from the browser."""
    for one in (query, cookie):
        if one in LANGUAGES:
            return one
    for part in accepted.split(","):
        code = find_language(part.partition(";")[0])
        if code is not None:
            return code
    return "en"
