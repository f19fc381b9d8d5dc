"""Pages made by script: a document in, the page that its scripts made of it out.

The document was fetched like any page. A Chromium that can make no connection of its own (`browser_jail`) is given it,
and asks for the rest through Playwright's interception; whoever renders answers each of these requests, so that guard,
robots.txt, permits and source address hold for them as for any other. A page can't have: anything but GET, images,
fonts, media, frames, sockets, workers of the service kind, popups, downloads.

A page is done when it has asked for nothing for a while and its main thread answers. One that hangs is closed within
`PATIENCE_S` and `CLOSE_S`; if even that fails, Chromium is killed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from splitter.errors import Message

from tasks.domain.pages import Response
from tasks.fetching.chromium import Chromium, NotRunning, Running
from tasks.fetching.page_visit import Ask, IsOwn, Visit, unreadable
from tasks.fetching.permits import WaitTooLong
from tasks.fetching.script_cache import ScriptCache

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

MOST_OPEN = 4
"""Pages of one process open at once."""
PATIENCE_S = 10.0
"""Time limit of a page. The time when one of its requests is under way does not count."""
LONGEST_S = 180.0
"""Time limit of a page in all."""
CLOSE_S = 3.0
_LONGEST_BACKOFF_S = 4.0


log = logging.getLogger("reviewloop.browser")


class Browser:
    """Renders pages for all nodes of a process; close it at the end.

    Args:
        program: Chromium's own.
        clock: monotonic seconds.
    """

    def __init__(self, program: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._chromium = Chromium(program, clock)
        self._places = asyncio.Semaphore(MOST_OPEN)
        self._scripts = ScriptCache(clock)

    async def enter(self, within_s: float) -> bool:
        """Wait at most `within_s` seconds until one more page may be open. Call `leave` after True."""
        try:
            async with asyncio.timeout(within_s):
                return await self._places.acquire()
        except TimeoutError:
            return False

    def leave(self) -> None:
        """Record that a page is closed."""
        self._places.release()

    async def render(self, document: Response, ask: Ask, is_own: IsOwn) -> Response:
        """The page as its scripts made it, as UTF-8 and without validators; between `enter` and `leave`.

        Args:
            document: of the page, as it was fetched.
            ask: called for each request of the page.

        Raises:
            FetchError: UNREADABLE if it hangs, crashes or is too large; the error of its own host on one of its
                    requests, if that is a refusal or no answer.
            WaitTooLong: its own host's next permit is too far ahead, or Chromium can't be had.
        """
        for _ in range(2):
            visit = Visit(document, ask, is_own, self._scripts)
            running = await self._enter_chromium()
            try:
                return await self._visit(running, visit)
            except _ChromiumGone:
                continue  # another page may be to blame
            finally:
                await self._chromium.leave(running)
        raise unreadable(Message("Chromium ended twice before it had read the page"))

    async def close(self) -> None:
        """End Chromium."""
        await self._chromium.close()

    async def _enter_chromium(self) -> Running:
        while True:
            try:
                return await self._chromium.enter()
            except NotRunning as error:
                log.warning("%s", error)
                if error.wait_s > _LONGEST_BACKOFF_S:
                    raise WaitTooLong("Chromium", error.wait_s) from error
                await asyncio.sleep(error.wait_s)

    async def _visit(self, running: Running, visit: Visit) -> Response:
        from playwright.async_api import Error

        context: BrowserContext | None = None
        try:
            async with asyncio.timeout(LONGEST_S), asyncio.timeout(PATIENCE_S) as patience:
                visit.patience = patience
                context = await running.browser.new_context(
                    accept_downloads=False,
                    service_workers="block",
                    locale="zh-CN",
                    timezone_id="Asia/Shanghai",
                )
                return await visit.run(context)
        except TimeoutError:
            raise visit.failure or unreadable(
                Message(
                    "it does not answer after {idle_s:g} s in which it waited for nothing, or {most_s:g} s in all",
                    idle_s=PATIENCE_S,
                    most_s=LONGEST_S,
                )
            ) from None
        except Error as error:
            if not running.browser.is_connected():
                raise _ChromiumGone from error
            raise visit.failure or unreadable(
                Message("Chromium: {error}", error=str(error).splitlines()[0][:300])
            ) from error
        finally:
            visit.end()
            await self._close(running, context)

    async def _close(self, running: Running, context: BrowserContext | None) -> None:
        """Close the page, whatever it is doing. If that takes too long, Chromium is killed."""
        from playwright.async_api import Error

        try:
            async with asyncio.timeout(CLOSE_S):
                with suppress(Error):
                    if context is not None:
                        await context.close()
                    elif running.browser.is_connected():
                        raise TimeoutError  # not even a new page could be opened
        except TimeoutError:
            log.warning("a page could not be closed within %.0f s: Chromium is killed", CLOSE_S)
            await self._chromium.kill(running)


class _ChromiumGone(Exception):
    """Chromium ended while a page was open."""
