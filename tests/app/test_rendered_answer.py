"""A page made by script, for `sites try`: which of its requests go where, without a browser."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.run.setting_fields import Settings
from app.sites import rendered_answer as module
from app.sites.http_session import Answer, AskFailed
from app.sites.rendered_answer import ask_rendered, refetch_page
from splitter.catalog.load import builtin
from splitter.errors import InputError
from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.reasons import Reason, because
from tasks.fetching.hosts import HostCatalog
from tasks.jobs.obstacles import Obstacle, ObstacleKind

URL = "http://www.cca.org.cn/1"
HOSTS = HostCatalog(builtin("paper-2014"))


class Scripted:
    """Stands for a browser: asks for two parts, and puts them into the page."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.own: list[bool] = []
        self.closed = False

    async def render(self, document: Any, ask: Any, is_own: Any) -> Any:
        if self.failure is not None:
            raise self.failure
        body = document.body
        for url in ("http://cca.org.cn/part", "http://other.example/part"):
            self.own.append(is_own(url))
            body += (await ask(url, {"x-part": "1"})).body
        return replace(document, body=body)

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def asked(monkeypatch):
    urls: list[tuple[str, bool]] = []

    def ask(url: str, _settings: Any, *, headers: Any = None, trusts: Any = None) -> Answer:
        urls.append((url, trusts == HOSTS.is_private))
        status = 403 if "refused" in url else 200
        body = url.rpartition("/")[2].encode()
        return Answer(url=url, status=status, headers={}, body=body, redirects=(), elapsed_s=0.1)

    monkeypatch.setattr(module, "ask", ask)
    monkeypatch.setattr(module, "browser_missing", lambda _settings: None)
    return urls


def test_what_its_scripts_ask_for_is_asked_like_the_page(monkeypatch, asked):
    browser = Scripted()
    monkeypatch.setattr(module, "new_browser", lambda _settings: browser)
    answer = ask_rendered(URL, Settings(), HOSTS)
    assert answer.body == b"1partpart"
    assert asked == [(URL, True), ("http://cca.org.cn/part", True), ("http://other.example/part", False)]
    assert browser.own == [True, False]
    assert browser.closed


def test_a_refusal_needs_no_browser_and_a_hang_is_no_answer(monkeypatch, asked):
    hung = Scripted(FetchError(ErrorClass.UNREADABLE, "made by script: it hangs"))
    monkeypatch.setattr(module, "new_browser", lambda _settings: hung)
    assert ask_rendered("http://cca.org.cn/refused", Settings(), HOSTS).status == 403
    with pytest.raises(AskFailed, match="it hangs"):
        ask_rendered(URL, Settings(), HOSTS)
    assert hung.closed


def test_without_a_browser_it_says_what_mends_it(monkeypatch, asked):
    lacks = Obstacle(
        kind=ObstacleKind.BROWSER,
        because=because(Reason.BROWSER_NEEDED, lacks="there is no Chromium"),
        mend="install one",
    )
    monkeypatch.setattr(module, "browser_missing", lambda _settings: lacks)
    with pytest.raises(InputError, match="there is no Chromium: install one"):
        ask_rendered(URL, Settings(), HOSTS)
    assert not asked


def test_asked_again_goes_by_the_sites_rules(monkeypatch, asked):
    catalog = builtin("paper-2014")
    made = catalog.sites["cca.org.cn"].model_copy(update={"render": "browser"})
    catalog = catalog.model_copy(update={"sites": {**catalog.sites, "cca.org.cn": made}})
    monkeypatch.setattr(Settings, "catalog", lambda _settings: catalog)
    monkeypatch.setattr(module, "new_browser", lambda _settings: Scripted())
    monkeypatch.setattr(module, "HostCatalog", lambda _catalog: HOSTS)
    assert refetch_page(URL, "cca.org.cn", Settings())["head"] == "1partpart"
    search = catalog.engine_of("cca.org.cn").url + "?wd=x"
    assert refetch_page(search, "cca.org.cn", Settings())["head"].startswith("s?wd=x")
    lacks = Obstacle(
        kind=ObstacleKind.BROWSER,
        because=because(Reason.BROWSER_NEEDED, lacks="there is no Chromium"),
        mend="install one",
    )
    monkeypatch.setattr(module, "browser_missing", lambda _settings: lacks)
    assert "there is no Chromium" in str(refetch_page(URL, "cca.org.cn", Settings())["error"])
    assert refetch_page("http://gone.cn/7", "gone.cn", Settings())["head"] == "7"
