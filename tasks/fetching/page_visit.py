"""One script-made page, open in Chromium: its requests are answered, it comes to rest, and it is read.

The page receives only the answers of `Visit`.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from splitter.errors import Message

from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import Response
from tasks.fetching.permits import WaitTooLong
from tasks.fetching.script_cache import ScriptCache

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Page, Request, Route

MOST_REQUESTS = 60
"""Requests a page may make; then its scripts are stopped, and it is read as it is."""
_RESERVE_S = 3.0
"""Seconds of its patience kept for reading. A page that never comes to rest is stopped and read as it is."""
QUIET_S = 0.5
"""Seconds without a request after which a page is done."""
MOST_CHARACTERS = 5_000_000
"""Maximum length of the page that its scripts made."""
_PIECE = 262_144

_ANSWERED = frozenset({"script", "xhr", "fetch"})
_OWN_HEADERS = frozenset({"user-agent", "accept-encoding", "accept-language", "host", "connection"})
_NOT_HANDED_ON = frozenset(
    {"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive", "alt-svc", "link"}
)
_VALIDATORS = frozenset({"etag", "last-modified"})
# A comma before a name and "=" begins the next cookie; one within a date does not.
_NEXT_COOKIE = re.compile(r",\s*(?=[^\s;,=]+=)")

Ask = Callable[[str, Mapping[str, str]], Awaitable[Response]]
"""Fetches a URL for a page, with headers. Raises FetchError, WaitTooLong."""

IsOwn = Callable[[str], bool]
"""True for a URL of the page's own host. The page is incomplete without its answer."""


log = logging.getLogger("reviewloop.browser")


class Visit:
    """One page, open.

    Attributes:
        patience: ends the visit; put off while requests of the page are under way.
        failure: of the page's own host: the page lacks what it was to answer.
    """

    def __init__(self, document: Response, ask: Ask, is_own: IsOwn, scripts: ScriptCache) -> None:
        self._document = document
        self._ask = ask
        self._is_own = is_own
        self._scripts = scripts
        self._given = False  # the document, to the page
        self._requests = 0
        self._under_way = 0
        self._left_s = 0.0
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Future[Any]] = set()
        self.patience: asyncio.Timeout | None = None
        self.failure: FetchError | WaitTooLong | None = None

    async def run(self, context: BrowserContext) -> Response:
        """Open the page, wait until it is made, and read it. Raises FetchError, WaitTooLong, playwright's Error."""
        # Targets that belong to no page of ours: popups, workers of the service kind.
        await context.route("**/*", _refuse)
        page = await context.new_page()
        context.on("page", lambda popup: self._later(_close_page(popup)))
        await page.route("**/*", self._answer)
        await page.goto(self._document.url, wait_until="commit", timeout=0)
        session = await context.new_cdp_session(page)
        while True:
            await self._quiet()
            requests = self._requests
            if restless := self._is_restless():
                await session.send("Emulation.setScriptExecutionDisabled", {"value": True})
            html, complete = await _read(session)
            if restless or (complete and requests == self._requests):
                return self._make_response(html)

    def end(self) -> None:
        """Stop answering."""
        for task in self._tasks:
            task.cancel()

    async def _quiet(self) -> None:
        """Return when the page has asked for nothing for `QUIET_S`. Raises the error of its own host."""
        while self.failure is None and not (self._is_restless() and not self._under_way):
            self._changed.clear()
            if self._under_way:
                await self._changed.wait()
                continue
            try:
                async with asyncio.timeout(QUIET_S):
                    await self._changed.wait()
            except TimeoutError:
                break
        if self.failure is not None:
            raise self.failure

    def _is_restless(self) -> bool:
        """Return True if the page has asked for too much, or hardly any time is left to read it."""
        ends_at = self.patience.when() if self.patience is not None else None
        hurries = ends_at is not None and ends_at - asyncio.get_running_loop().time() < _RESERVE_S
        return hurries or self._requests >= MOST_REQUESTS

    def _make_response(self, html: str) -> Response:
        headers = {name: value for name, value in self._document.headers.items() if name not in _VALIDATORS}
        headers["content-type"] = "text/html; charset=utf-8"
        return replace(self._document, headers=headers, body=f"<!DOCTYPE html>{html}".encode())

    async def _answer(self, route: Route, request: Request) -> None:
        """Answer one request of the page; nothing reaches it otherwise."""
        from playwright.async_api import Error

        # It is cancelled with the visit, as its answer may take long.
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        with suppress(Error):  # the page is gone
            if request.resource_type == "stylesheet":
                await route.fulfill(status=200, content_type="text/css", body="")
                return
            response = await self._response(request)
            if response is None:
                await route.abort("blockedbyclient")
            else:
                await route.fulfill(
                    status=response.status, headers=_page_headers(response.headers), body=response.body
                )

    async def _response(self, request: Request) -> Response | None:
        """The answer to a request; None: it is refused."""
        is_document = request.resource_type == "document"
        if is_document and not _is_main(request):
            return None
        if is_document and not self._given:
            self._given = True
            return self._document
        if not is_document and request.resource_type not in _ANSWERED:
            return None
        if request.method != "GET" or not request.url.startswith(("http://", "https://")):
            return None
        if self._requests >= MOST_REQUESTS:
            return None
        self._requests += 1
        with self._asking():
            return await self._fetch(request, is_document=is_document)

    async def _fetch(self, request: Request, *, is_document: bool) -> Response | None:
        url = request.url
        is_script = request.resource_type == "script"
        if is_script and (kept := self._scripts.get(url)) is not None:
            return kept
        headers = await request.all_headers()
        try:
            response = await self._ask(url, {name: headers[name] for name in headers if _is_passed(name)})
        except WaitTooLong as error:
            if is_document or self._is_own(url):
                self._fail(error)
            return None
        except FetchError as error:
            if is_document or (self._is_own(url) and not error.error.facts.final):
                self._fail(error)
            log.debug("a page at %s lacks %s: %s", self._document.url, url, error)
            return error.response
        if is_document:  # the page goes elsewhere by itself
            self._document = response
        if is_script:
            self._scripts.keep(url, response)
        return response

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """While a request is under way, the page may wait."""
        now = asyncio.get_running_loop().time
        patience = self.patience
        if not self._under_way and patience is not None and not patience.expired():
            ends_at = patience.when()
            self._left_s = max(0.0, ends_at - now()) if ends_at is not None else self._left_s
            patience.reschedule(None)
        self._under_way += 1
        self._changed.set()
        try:
            yield
        finally:
            self._under_way -= 1
            self._changed.set()
            if not self._under_way and patience is not None and not patience.expired():
                with suppress(RuntimeError):  # it is over
                    patience.reschedule(now() + self._left_s)

    def _fail(self, failure: FetchError | WaitTooLong) -> None:
        self.failure = self.failure or failure
        self._changed.set()

    def _later(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def unreadable(why: Message) -> FetchError:
    """The error of a page that its scripts don't make in its time and memory."""
    return FetchError(ErrorClass.UNREADABLE, Message("made by script: {why}", why=why))


async def _read(session: CDPSession) -> tuple[str, bool]:
    """Return the page as it is now, and whether its document has loaded.

    It is read in pieces, in an isolated world that the page's scripts can't change.

    Raises:
        FetchError: it is too large.
    """
    tree = await session.send("Page.getFrameTree")
    world = await session.send("Page.createIsolatedWorld", {"frameId": tree["frameTree"]["frame"]["id"]})

    async def value(expression: str) -> Any:
        said = await session.send(
            "Runtime.evaluate",
            {
                "expression": expression,
                "contextId": world["executionContextId"],
                "returnByValue": True,
            },
        )
        return said["result"].get("value")

    state, length = await value(
        # Links as the browser asks for them. The page arrives in UTF-8, so only the browser knows its encoding.
        "for (const link of document.links)"
        "  if (/[^\\0-\\x7f]/.test(link.getAttribute('href'))) link.setAttribute('href', link.href);"
        "globalThis.html = document.documentElement ? document.documentElement.outerHTML.toWellFormed() : '';"
        "[document.readyState, html.length]"
    )
    if length > MOST_CHARACTERS:
        raise FetchError(
            ErrorClass.TOO_LARGE, Message("its scripts made a page of {length:,} characters", length=length)
        )
    pieces = [await value(f"html.slice({at}, {at + _PIECE})") for at in range(0, length, _PIECE)]
    return "".join(pieces), state == "complete"


def _is_main(request: Request) -> bool:
    """Whether a document is asked for the page itself, not for a frame in it."""
    from playwright.async_api import Error

    try:
        return request.is_navigation_request() and request.frame.parent_frame is None
    except Error:
        return False


def _is_passed(name: str) -> bool:
    """Return True if a header of the browser is sent on. The node sets some headers itself."""
    return name not in _OWN_HEADERS and not name.startswith(("sec-", ":"))


def _page_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers as the page sees them."""
    given = {name: value for name, value in headers.items() if name not in _NOT_HANDED_ON}
    if (cookies := given.get("set-cookie")) is not None:
        given["set-cookie"] = "\n".join(_NEXT_COOKIE.split(cookies))
    return given


async def _refuse(route: Route) -> None:
    await route.abort("blockedbyclient")


async def _close_page(page: Page) -> None:
    from playwright.async_api import Error

    with suppress(Error):
        await page.close()
