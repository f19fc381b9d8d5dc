"""A page made by script, from the lab: every request of its scripts is one of the attempt's own."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from patience import patient_with_chromium

from app.lab.profile import Profile, RobotsProfile
from app.lab.server import Lab
from splitter.catalog.load import parse_catalog
from tasks.domain.pages import Response
from tasks.fetching import page_visit
from tasks.fetching.browser import Browser
from tasks.fetching.chromium import find_chromium, missing
from tasks.fetching.downloader import Downloader
from tasks.fetching.hosts import HostCatalog
from tasks.fetching.permits import LocalPermits, WaitTooLong
from tasks.fetching.robots import RobotsRules
from tasks.reading.page_jobs import PageJob
from tasks.worker.counters import Timing
from tasks.worker.fetcher import Dependencies, Fetcher
from tasks.worker.page_parts import PageParts
from tasks.worker.settings import CrawlSettings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CATALOG = parse_catalog(
    """\
version: 1
name: made by script
limits: {per_address_per_s: 50, total_per_s: 200}
rules:
  app: {review: div.record, id: "@data-id", body: div.body, render: browser}
engines:
  search:
    kind: meta
    url: http://s.example/s
    params: {q: "{query}"}
    results: {hit: li, link: a@href, title: a, empty: [nothing]}
sites:
  app.example: {engine: search, rules: app}
  refusing.example: {engine: search, rules: app}
""",
    "script.yaml",
)
SHELL = """<p id=p>shell</p><script>
fetch("/app.js").then(answer => answer.text()).then(text => { p.textContent = text.length; });
for (const url of ["http://refusing.example/part", "http://10.0.0.7/part", "http://169.254.169.254/latest",
                   "file:///etc/passwd"]) {
  fetch(url).catch(() => 0);
}
</script>"""


class Book:
    """Stands for the robots.txt of hosts, fetched each time."""

    async def rules(self, url: str, fetch: Any, _address: str = "") -> RobotsRules:
        response: Response = await fetch("/".join(url.split("/")[:3]) + "/robots.txt")
        return RobotsRules.parse(response.body.decode(), response.status)


def deps(downloader: Downloader, browser: Browser | None) -> Dependencies:
    nothing: Any = None
    book: Any = Book()
    return Dependencies(
        downloader=downloader,
        permits=LocalPermits(time.monotonic),
        robots=book,
        hosts=HostCatalog(CATALOG),
        address="127.0.0.5",
        settings=CrawlSettings(),
        now=lambda: NOW,
        seen=nothing,
        browser=browser,
    )


@pytest.mark.slow
@pytest.mark.skipif(any(missing()), reason=f"pages made by script: {missing()[0]}")
def test_the_lab_sees_a_page_s_requests_as_the_node_s_own(tmp_path, monkeypatch):
    patient_with_chromium(monkeypatch)
    monkeypatch.setattr(page_visit, "QUIET_S", 4 * page_visit.QUIET_S)
    program = find_chromium()
    assert program is not None

    async def run() -> tuple[Response, Response, Timing, Lab]:
        profile = Profile(name="one refuses", robots=RobotsProfile(refuse=("refusing.example",)))
        lab = Lab(CATALOG, profile, reviews=tmp_path / "none")
        await lab.start("127.0.0.1", 0)
        browser = Browser(program)
        downloader = Downloader(
            user_agent="reviewloop/test",
            clock=lambda: NOW,
            local_address="127.0.0.5",
            lab=(lab.host, lab.port),
        )
        try:
            async with downloader:
                timing = Timing(time.monotonic)
                fetcher = Fetcher(deps(downloader, browser), timing, lambda _: None, "app.example")
                url = lab.web.truth("app.example", ("牛奶",))[0]
                with timing.active:
                    made = await fetcher.render(url)
                assert not timing.under_way
                first = len(lab.log.entries())
                assert timing.requests == first
                # A page that tries what it may not.
                shell = Response(url=url, status=200, headers={}, body=SHELL.encode(), elapsed_s=0.1)
                parts = PageParts(
                    url, fetcher._part, HostCatalog(CATALOG), timing, lambda _: None
                )  # as `render` does
                with timing.active:
                    tried = await browser.render(shell, parts.ask, parts.is_own)
                return made, tried, timing, lab
        finally:
            await browser.close()
            await lab.stop()

    made, tried, timing, lab = asyncio.run(run())
    read, _ = PageJob.from_response(made, NOW, rules=CATALOG.rules_of("app.example"), hint="").read()
    assert read.reviews, "read like a downloaded page"
    entries = lab.log.entries()
    assert {entry.client for entry in entries} == {"127.0.0.5"}, "from the node's own address"
    asked = {(entry.host, entry.path.partition("?")[0]) for entry in entries}
    assert ("app.example", "/app.js") in asked
    assert ("refusing.example", "/robots.txt") in asked
    assert ("refusing.example", "/part") not in asked
    assert not any(host.startswith(("10.", "169.")) for host, _ in asked), "private addresses are refused"
    assert timing.requests == len(entries), "each with a permit"
    assert '<p id="p">shell</p>' not in tried.body.decode()


def test_without_a_browser_a_page_waits(monkeypatch):
    timing = Timing(lambda: 0.0)
    nothing: Any = None
    fetcher = Fetcher(deps(nothing, None), timing, lambda _: None, "app.example")

    async def page(url: str, **_: Any) -> Response:
        return Response(url=url, status=200, headers={"content-type": kind}, body=b"", elapsed_s=0.1)

    monkeypatch.setattr(fetcher, "page", page)
    kind = "text/html"
    with pytest.raises(WaitTooLong, match="Chromium"):
        asyncio.run(fetcher.render("http://app.example/1"))
    kind = "application/json"
    assert asyncio.run(fetcher.render("http://app.example/1")).body == b"", "no script to run"


def test_parts_of_a_page_that_wait_together_are_timed_once():
    now_s = 0.0
    timing = Timing(lambda: now_s)
    told: list[float] = []

    async def run() -> None:
        nonlocal now_s
        let = asyncio.Event()

        async def fetch(url: str, _headers: Any, own: bool) -> Any:
            assert own == (url == "http://app.example/part")
            with timing.waiting:
                await let.wait()

        parts = PageParts("http://app.example/1", fetch, HostCatalog(CATALOG), timing, told.append)
        with timing.active:
            now_s = 1.0
            urls = ["http://app.example/part", "http://other.example/a", "http://other.example/b"]
            asked = [asyncio.ensure_future(parts.ask(url, {})) for url in urls]
            await asyncio.sleep(0)
            now_s = 8.0  # all of them wait, and the page for them
            let.set()
            await asyncio.gather(*asked)
            now_s = 10.0

    asyncio.run(run())
    assert (timing.active_s, timing.wait_s) == (3.0, 7.0)
    assert not timing.under_way
