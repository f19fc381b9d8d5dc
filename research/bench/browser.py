"""Pages made by script: a browser beside the plain downloader on the same addresses, its memory, and what a hang costs.

The lab, in a process of its own, serves documents whose script fetches what stands in them. No permits are waited for:
what is measured is this machine. The downloader gets the documents only, which have no review in them; its pages a
second say what the browser costs, not that it could be left out.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from app.run import event_loops
from research.bench.hostile import longest_hold
from research.tools.cputime import tree
from research.tools.labs import lab_process
from splitter.catalog.load import parse_catalog
from splitter.urls import search_url
from tasks.domain.failures import FetchError
from tasks.domain.pages import Response
from tasks.fetching import browser as rendering
from tasks.fetching.browser import MOST_OPEN, Browser
from tasks.fetching.chromium import find_chromium
from tasks.fetching.downloader import Downloader
from tasks.fetching.page_visit import Ask, IsOwn
from tasks.fetching.permits import WaitTooLong
from tasks.reading.page_jobs import PageJob
from tasks.reading.results import read_results

PAGES = 60
_HANG_S: float | None = None
"""Patience with the page that hangs, and with its closing; None: a node's own."""
_SITE = "app.example"
_RENDERINGS = 20
_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_CATALOG = """\
version: 1
name: made by script
limits: {per_address_per_s: 1000, total_per_s: 10000}
rules:
  app: {review: div.record, id: "@data-id", body: div.body, author: span.author, date: span.date, render: browser}
engines:
  search:
    kind: meta
    url: http://s.example/s
    params: {q: "{query}", p: "{page}"}
    paging_params: [p]
    hits_per_page: 50
    results: {hit: li.hit, link: a@href, title: a, empty: [没有找到]}
sites:
  app.example: {engine: search, rules: app}
"""
_NAMES = (
    "光明 牛奶",
    "蒙牛 酸奶",
    "伊利 奶粉",
    "三元 牛奶",
    "特仑苏 纯甄",
    "儿童 奶酪",
    "燕麦 牛奶",
    "维维 豆奶",
)
_ENDLESS = b"<p>page</p><script>while (true);</script>"
_WAITING = b"<p>page</p><script src=/never></script>"
_EMPTY = b"<p>page</p>"


def run(_shared: Path, *, smallest: bool = False) -> dict[str, Any]:
    """Measure; with `smallest`, few pages, and a page that hangs only."""
    with tempfile.TemporaryDirectory() as folder:
        sites = Path(folder) / "sites.yaml"
        sites.write_text(_CATALOG, "utf-8")
        profile = Path(folder) / "perfect.yaml"
        profile.write_text("name: perfect\n", "utf-8")
        with (
            lab_process(str(profile), sites=str(sites)) as lab,
            event_loops.runner() as runner,
        ):  # as a node does
            urls = _addresses(lab, 4 if smallest else PAGES)
            figures = runner.run(_measure(lab, urls, signals=not smallest))
    plain, rendered = figures["downloader"], figures["browser"]
    return {
        "bench": "browser",
        "ratios": {
            "pages_of_downloader": round(rendered["pages_per_s"] / plain["pages_per_s"], 4),
            "cpu_ms_per_page": rendered["cpu_ms_per_page"],
            "mb_per_open_page": figures["memory_mb"]["each_page"],
            "hang_s": figures["endless_script"]["seconds"],
            "hold_cpu_ms": max(
                one["hold_cpu_ms"]
                for one in figures.values()
                if isinstance(one, dict) and "hold_cpu_ms" in one
            ),
        },
        "figures": figures,
    }


def _addresses(lab: tuple[str, int], count: int) -> list[str]:
    """Addresses of pages, from the result pages of the lab's engine."""
    catalog = parse_catalog(_CATALOG, "bench")
    engine = catalog.engine_of(_SITE)
    found: dict[str, None] = {}
    for name in _NAMES:
        for page in range(1, 9):
            url = search_url(engine, tuple(name.split()), site=_SITE, page=page)
            path = url.partition("s.example")[2]
            asked = Request(f"http://{lab[0]}:{lab[1]}{path}", headers={"Host": "s.example"})
            with urlopen(asked, timeout=30) as answer:
                text = answer.read().decode()
            with suppress(FetchError):
                found |= dict.fromkeys(hit.url for hit in read_results(text, url, engine.results).hits)
            if len(found) >= count:
                return list(found)[:count]
    return list(found)


async def _measure(lab: tuple[str, int], urls: list[str], *, signals: bool) -> dict[str, Any]:
    program = find_chromium()
    assert program is not None  # the table of benches says that it needs one
    rules = parse_catalog(_CATALOG, "bench").rules_of(_SITE)
    async with AsyncExitStack() as stack:
        downloader = await stack.enter_async_context(
            Downloader(user_agent="reviewloop bench", clock=lambda: _NOW, lab=lab)
        )
        browser = Browser(program)
        stack.push_async_callback(browser.close)

        async def ask(url: str, headers: Mapping[str, str]) -> Response:
            return await downloader.fetch(url, headers=headers)

        async def rendered(url: str) -> Response:
            return await _read(browser, await downloader.fetch(url), ask, lambda part: _SITE in part)

        started = time.perf_counter()
        await _read(browser, _page(_EMPTY), ask, lambda _: True)
        figures: dict[str, Any] = {"first_page_s": round(time.perf_counter() - started, 2)}
        for name, fetch in (("downloader", downloader.fetch), ("browser", rendered)):
            responses, told = await _timed(urls, fetch)
            jobs = (PageJob.of(one, rules, "", _NOW) for one in responses)
            told["reviews"] = sum(len(_reviews(job)) for job in jobs)
            figures[name] = told
        figures["memory_mb"] = await _memory(browser)
        figures["endless_script"] = await _ended(browser, ask)
        if signals:
            figures["frozen"] = await _ended(browser, ask, signal.SIGSTOP)
            figures["killed"] = await _ended(browser, ask, signal.SIGKILL)
    return figures


async def _read(browser: Browser, document: Response, ask: Ask, is_own: IsOwn) -> Response:
    """A page that can be read, rendered anew where the machine was too busy for it in the browser's patience."""
    for _ in range(_RENDERINGS - 1):
        with suppress(FetchError, WaitTooLong):
            return await browser.render(document, ask, is_own)
    return await browser.render(document, ask, is_own)


def _reviews(job: PageJob) -> tuple[Any, ...]:
    try:
        return job.read(apart=True)[0].reviews
    except FetchError:
        return ()


async def _timed(
    urls: list[str], fetch: Callable[[str], Awaitable[Response]]
) -> tuple[list[Response], dict[str, Any]]:
    """Fetch them all, as many at once as pages may be open."""
    waiting: list[str] = list(urls)
    got: list[Response] = []

    async def lane() -> None:
        while waiting:
            got.append(await fetch(waiting.pop()))

    watch = asyncio.create_task(longest_hold())
    began_s, cpu_s = time.perf_counter(), _cpu_s()
    await asyncio.gather(*(lane() for _ in range(MOST_OPEN)))
    seconds = time.perf_counter() - began_s
    cpu_s = _cpu_s() - cpu_s
    watch.cancel()
    hold_s, hold_cpu_s = await watch
    return got, {
        "pages": len(got),
        "pages_per_s": round(len(got) / seconds, 2),
        "cpu_ms_per_page": round(1000 * cpu_s / len(got), 1),
        "hold_ms": round(1000 * hold_s, 1),
        "hold_cpu_ms": round(1000 * hold_cpu_s, 1),
    }


async def _memory(browser: Browser) -> dict[str, float]:
    """Memory (PSS) of Chromium and Playwright without a page, and what each open page adds."""
    opened = 0
    all_open = asyncio.Event()

    async def wait(_url: str, _headers: Mapping[str, str]) -> Response:
        nonlocal opened
        opened += 1
        if opened == MOST_OPEN:
            all_open.set()
        await asyncio.Event().wait()
        raise AssertionError

    without = _pss_mb(browser)
    pages = [
        asyncio.ensure_future(browser.render(_page(_WAITING, n), wait, lambda _: True))
        for n in range(MOST_OPEN)
    ]
    await all_open.wait()
    with_pages = _pss_mb(browser)
    for page in pages:
        page.cancel()
    await asyncio.gather(*pages, return_exceptions=True)
    return {
        "without_a_page": round(without, 1),
        f"with_{MOST_OPEN}_pages": round(with_pages, 1),
        "each_page": round((with_pages - without) / MOST_OPEN, 1),
    }


async def _ended(
    browser: Browser,
    ask: Ask,
    number: signal.Signals | None = None,
) -> dict[str, Any]:
    """How a page that hangs, or whose Chromium gets a signal, ends; and when the next one is there."""
    if number is not None:
        os.killpg(_pids(browser)[0], number)
    watch = asyncio.create_task(longest_hold())
    began_s = time.perf_counter()
    outcome = "read"
    own = rendering.PATIENCE_S, rendering.CLOSE_S
    try:
        if _HANG_S is not None:
            rendering.PATIENCE_S = rendering.CLOSE_S = _HANG_S
        await browser.render(_page(_ENDLESS if number is None else _EMPTY), ask, lambda _: True)
    except (FetchError, WaitTooLong) as error:
        outcome = error.error.value if isinstance(error, FetchError) else "to be tried later"
    finally:
        rendering.PATIENCE_S, rendering.CLOSE_S = own
    seconds = time.perf_counter() - began_s
    watch.cancel()
    hold_s, hold_cpu_s = await watch
    await _read(browser, _page(_EMPTY), ask, lambda _: True)
    return {
        "outcome": outcome,
        "seconds": round(seconds, 2),
        "next_page_s": round(time.perf_counter() - began_s - seconds, 2),
        "hold_ms": round(1000 * hold_s, 1),
        "hold_cpu_ms": round(1000 * hold_cpu_s, 1),
    }


def _page(body: bytes, number: int = 0) -> Response:
    url = f"http://p{number}.example/page"
    return Response(url=url, status=200, headers={}, body=body, elapsed_s=0.0)


def _pids(browser: Browser) -> tuple[int, int]:
    running = browser._chromium._running
    found = running.pids() if running is not None else None
    assert found is not None
    return found


def _cpu_s() -> float:
    """Of this process, Playwright and Chromium; the lab is below it, too, and is the same for all."""
    return sum(tree(os.getpid()).values())


def _pss_mb(browser: Browser) -> float:
    return sum(_pss_kb(pid) for pid in tree(_pids(browser)[1])) / 1024


def _pss_kb(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
