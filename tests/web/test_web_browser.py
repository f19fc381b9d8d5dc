"""The dashboard in a real browser: pages, main actions; nothing of a crawled page runs, nothing comes from outside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dashboard import Served
from patience import PATIENCE_S
from sample_store import SITE
from sqlalchemy import select

from tasks.store.sql.tables import subtasks

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

_CHROMIUM = Path("/usr/bin/chromium")
_SWITCHES = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-component-update",
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not _CHROMIUM.exists(), reason="there is no /usr/bin/chromium"),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[sync_api.Browser]:
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=str(_CHROMIUM), args=list(_SWITCHES), timeout=PATIENCE_S * 1000
        )
        yield running
        running.close()


@pytest.fixture
def tab(browser: sync_api.Browser) -> Iterator[sync_api.Page]:
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark", locale="en-US")
    context.set_default_timeout(PATIENCE_S * 1000)
    yield context.new_page()
    context.close()


def test_every_page_runs_nothing_of_what_was_crawled_and_asks_nobody_else(
    sample: Served, tab: sync_api.Page
) -> None:
    asked: list[str] = []
    complaints: list[str] = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    for path in ("", "matrix", f"pairs/{SITE}/node2", "failed", "failed/3", "reviews", "reviews/1", "reviews/2",
                 "products", "products/1", "nodes", "sites", f"sites/{SITE}", "audit"):  # fmt: skip
        tab.goto(sample.address + path)
        assert tab.title().endswith("· reviewloop"), path
        assert tab.title() != "owned", path
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390, f"{path} is wider than a phone"
    assert complaints == []
    assert {url.split("?")[0].startswith(sample.address) for url in asked} == {True}


def test_failed_tasks_are_tried_again_by_keyboard(served: Served, tab: sync_api.Page) -> None:
    tab.goto(served.address + "failed")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to the content"
    tab.get_by_label("Choose subtask 3").focus()
    tab.keyboard.press("Space")
    tab.get_by_role("button", name="Try again", exact=True).focus()
    tab.keyboard.press("Enter")
    tab.get_by_text("Tried again: 1 subtasks.").wait_for()
    with served.store.read() as tx:
        assert (
            tx.engine_connection.execute(select(subtasks.c.state).where(subtasks.c.id == 3)).scalar_one()
            == "WAIT"
        )


def test_abandoning_asks_first(served: Served, tab: sync_api.Page) -> None:
    tab.goto(served.address + "failed/3")
    tab.once("dialog", lambda dialog: dialog.dismiss())
    tab.get_by_role("button", name="Abandon").click()
    with served.store.read() as tx:
        assert (
            tx.engine_connection.execute(select(subtasks.c.state).where(subtasks.c.id == 3)).scalar_one()
            == "MANUAL"
        )
    tab.once("dialog", lambda dialog: dialog.accept())
    tab.get_by_role("button", name="Abandon").click()
    tab.get_by_text("Abandoned: 1 subtasks.").wait_for()
