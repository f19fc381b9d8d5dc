"""The Chromium of a process. It is found, started through Playwright, restarted if it dies, and killed if it hangs.

It runs closed off (`tasks.fetching.browser_jail`): every byte that it gets is handed to it by `tasks.fetching.browser`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from splitter.errors import Message

from tasks.fetching import browser_jail

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

PROGRAMS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "msedge",
    "microsoft-edge",
    "microsoft-edge-stable",
)
"""Program names that are looked for on PATH, in this order."""

MOST_PAGES = 200
"""Number of pages after which Chromium is restarted, to free the memory that pages leave behind."""
MOST_DATA_MB = 2048
"""Data of one of its processes, which has one page; a page that wants more crashes."""
START_S = 30.0
_CLOSE_S = 5.0
_LONGEST_BACKOFF_S = 60.0
_STEADY_PAGES = 20
"""Number of pages after which an earlier death is forgotten."""
_FOLDER = "reviewloop-chromium-"

_ARGUMENTS = (
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    # The kernel refuses its sockets. These spare it the tries, and leave name servers alone, which a daemon of the
    # machine might ask for it.
    "--proxy-server=http://127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--dns-prefetch-disable",
    "--blink-settings=imagesEnabled=false",
    "--mute-audio",
    "--js-flags=--max-old-space-size=512",
)

log = logging.getLogger("reviewloop.browser")


class NotRunning(Exception):
    """Chromium can't be had now.

    Attributes:
        wait_s: seconds after which it makes sense to try again.
    """

    def __init__(self, why: str, wait_s: float) -> None:
        super().__init__(why)
        self.wait_s = wait_s


def find_chromium(given: str = "") -> Path | None:
    """Return the browser's program; None if there is none.

    Args:
        given: a path or a name on PATH; empty: the first of `PROGRAMS` that is on PATH.
    """
    found = (shutil.which(name) for name in ((given,) if given else PROGRAMS))
    return next((Path(program) for program in found if program), None)


def missing(given: str = "") -> tuple[str, Message | None]:
    """Return what pages made by script lack here, and what mends it; empty and `None` if nothing is missing.

    Args:
        given: as of `find_chromium`.
    """
    if not browser_jail.is_supported():
        return "a browser can be closed off on Linux on x86_64 and aarch64 only", Message(
            "run this node there"
        )
    if find_spec("playwright") is None:
        return "Playwright is not installed", Message("pip install 'reviewloop[browser]'")
    if find_chromium(given) is None:
        if given:
            return "REVIEWLOOP_CHROMIUM names no program", Message("set it to the path of a Chromium")
        mend = Message("install one (apt install chromium) or set REVIEWLOOP_CHROMIUM")
        return "there is no Chromium on PATH", mend
    return "", None


@dataclass(slots=True, eq=False)
class Running:
    """One started Chromium.

    Attributes:
        folder: of its own, removed with it.
        pages: opened so far; `open`: open now.
        ended: it was closed or killed.
    """

    playwright: Playwright
    browser: Browser
    folder: Path
    pages: int = 0
    open: int = 0
    ended: bool = False

    def pids(self) -> tuple[int, int] | None:
        """Chromium's process, and Playwright's, which is its parent and a child of this one; None: it never began."""
        try:
            chromium, driver = map(int, (self.folder / "pid").read_text("ascii").split())
        except (OSError, ValueError):
            return None
        return chromium, driver


class Chromium:
    """Keeps one Chromium running for a process, from its first page on; close it at the end.

    Args:
        program: its own.
        clock: monotonic seconds.
    """

    def __init__(self, program: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._program = program
        self._clock = clock
        self._starting = asyncio.Lock()
        self._running: Running | None = None
        self._all: set[Running] = set()
        self._deaths = 0
        self._not_before_s = 0.0

    async def enter(self) -> Running:
        """The Chromium that opens the next page: call `leave` with it afterwards. Raises NotRunning."""
        async with self._starting:
            running = self._running
            if running is not None and not running.browser.is_connected():
                log.warning("Chromium ended by itself; it is started again")
                await self.kill(running)
            elif running is not None and running.pages >= MOST_PAGES:
                self._running = None
                await self._end_if_idle(running)
            if self._running is None:
                self._running = await self._start()
            running = self._running
            running.pages += 1
            running.open += 1
            if running.pages == _STEADY_PAGES:
                self._deaths = 0
            return running

    async def leave(self, running: Running) -> None:
        """A page was closed."""
        running.open -= 1
        await self._end_if_idle(running)

    async def kill(self, running: Running) -> None:
        """End a Chromium that hangs or died, with all its pages. The next one is started after a while."""
        if running.ended:
            return
        if running is self._running:
            self._running = None
            self._note_death()
        # Playwright notices and ends in order, unless it is frozen itself.
        _kill(running, driver=False)
        await self._end(running)

    async def close(self) -> None:
        """End every running Chromium."""
        self._running = None
        for running in list(self._all):
            await self._end(running)

    async def _end_if_idle(self, running: Running) -> None:
        if running is not self._running and not running.open:
            await self._end(running)

    async def _end(self, running: Running) -> None:
        self._all.discard(running)
        if not running.ended:
            running.ended = True
            await _end(running)

    def _note_death(self) -> None:
        self._deaths += 1
        # At once after the first, then after 1 s, 2 s, 4 s ...
        wait_s = min(_LONGEST_BACKOFF_S, 2.0 ** (self._deaths - 2)) if self._deaths > 1 else 0.0
        self._not_before_s = self._clock() + wait_s

    async def _start(self) -> Running:
        wait_s = self._not_before_s - self._clock()
        if wait_s > 0:
            raise NotRunning(f"Chromium died {self._deaths} times in a row", wait_s)
        from playwright.async_api import Error, async_playwright

        _remove_left_behind()
        folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-"))
        jailed = (
            sys.executable,
            "-I",
            "-S",
            browser_jail.__file__,
            folder / "pid",
            MOST_DATA_MB,
            self._program,
        )
        launcher = folder / "chromium"
        launcher.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, jailed))} "$@"\n', "utf-8")
        launcher.chmod(0o700)
        playwright: Playwright | None = None
        began_s = self._clock()
        try:
            async with asyncio.timeout(START_S):
                playwright = await async_playwright().start()
                browser = await playwright.chromium.launch(
                    executable_path=launcher,
                    args=list(_ARGUMENTS),
                    # As root Chromium has no sandbox of its own.
                    chromium_sandbox=os.geteuid() != 0,
                    # None of this process's secrets.
                    env={"HOME": str(folder), "TMPDIR": str(folder), "LC_ALL": "C.UTF-8", "PATH": os.defpath},
                    handle_sigint=False,
                    handle_sigterm=False,
                    handle_sighup=False,
                    timeout=START_S * 1000,
                )
        except (Error, OSError, TimeoutError) as error:
            self._note_death()
            if playwright is not None:
                with suppress(Error, TimeoutError):
                    async with asyncio.timeout(_CLOSE_S):
                        await playwright.stop()
            shutil.rmtree(folder, ignore_errors=True)
            said = (str(error).strip() or f"it was not there within {START_S:g} s").splitlines()[0]
            raise NotRunning(
                f"{self._program} does not start: {said}", max(1.0, self._not_before_s - self._clock())
            ) from error
        log.debug("Chromium %s started in %.1f s", browser.version, self._clock() - began_s)
        running = Running(playwright, browser, folder)
        self._all.add(running)
        return running


async def _end(running: Running) -> None:
    """End it in order, or by force if that takes too long."""
    from playwright.async_api import Error

    try:
        async with asyncio.timeout(_CLOSE_S):
            with suppress(Error):
                await running.browser.close()
            with suppress(Error):
                await running.playwright.stop()
    except TimeoutError:
        _kill(running, driver=True)
    except asyncio.CancelledError:
        _kill(running, driver=True)
        raise
    finally:
        await asyncio.to_thread(shutil.rmtree, running.folder, ignore_errors=True)


def _kill(running: Running, *, driver: bool) -> None:
    """Kill it with all its processes; and Playwright's, its parent."""
    if (pids := running.pids()) is None:
        return
    # A number may be another process's by now.
    chromium, its_driver = pids
    with suppress(ProcessLookupError):
        if _parent(chromium) == its_driver:
            os.killpg(chromium, signal.SIGKILL)
        if driver and _parent(its_driver) == os.getpid():
            os.kill(its_driver, signal.SIGKILL)


def _parent(pid: int) -> int:
    """Return the parent of a process; 0 if there is no such process."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return 0
    return int(status.rpartition(")")[2].split()[1])


def _remove_left_behind() -> None:
    """Remove the folders of processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        owner = folder.name.removeprefix(_FOLDER).partition("-")[0]
        if owner.isdecimal() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(folder, ignore_errors=True)
