"""Pictures of every page of the dashboard, for docs/dashboard: by Chromium, from a store that the demo left.

    reviewloop demo --db demo.db
    python -m research.tools.dashboard_pictures demo.db docs/dashboard [NAME]...     # these pictures only

It adds schedules to the store where it has none, so that their page shows some.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright
from sqlalchemy import func, select

from app.actions import schedule_actions
from app.actions.schedule_actions import rule_of
from app.run.setting_values import database
from app.run.settings import Settings
from app.web.address import listening_near
from app.web.server import serving
from tasks.fetching.chromium import find_chromium
from tasks.store import manual, schedules
from tasks.store.database import Store
from tasks.store.schedules import ScheduleKind
from tasks.store.tables import attempts, reviews

_WIDE, _PHONE = (1200, 900), (390, 844)
_TALLEST = {_WIDE: 1500, _PHONE: 1500}
_COLOURS = 128
_TRIED = """<html><head><title>投诉光明高钙牛奶 - 12315.com</title></head><body><div class="post" id="p1">
<h2 class="post-title">投诉光明高钙牛奶结块</h2><a class="post-author">王女士</a>
<em class="post-date">2012-05-01 09:30</em><div class="post-body">光明高钙牛奶喝了第一口就发现结块了，
打电话给客服也没有人理会，要求退款并且赔偿。</div></div></body></html>"""


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture.

    Attributes:
        path: of the page.
        prepare: what is done on the page before.
    """

    name: str
    path: str
    size: tuple[int, int] = _WIDE
    dark: bool = False
    chinese: bool = False
    prepare: Callable[[Page], object] = lambda _page: None


def pictures(store: Store) -> list[Picture]:
    """Every page at least once, each look (light, dark, phone, Chinese) several times."""
    with store.read() as conn:
        waiting = manual.listed(conn)
        first = waiting[0].subtask_id if waiting else 1
        pair = conn.execute(
            select(attempts.c.site, attempts.c.node)
            .group_by(attempts.c.site, attempts.c.node)
            .having(func.sum(attempts.c.collected) > 0)
            .order_by(func.count().desc(), attempts.c.site)
        ).first()
        repost = conn.scalar(select(reviews.c.id).order_by(reviews.c.id).limit(1))
    if pair is None:
        raise SystemExit("the store has no attempt that collected anything: run the demo to its end")
    of_pair, site = f"pairs/{pair.site}/{pair.node}", f"sites/{pair.site}"
    return [
        Picture("overview", ""),
        Picture("overview-phone-dark", "", _PHONE, dark=True),
        Picture("matrix", "matrix"),
        Picture("matrix-dark", "matrix", dark=True),
        Picture("matrix-phone-zh", "matrix", _PHONE, chinese=True),
        Picture("pair", of_pair),
        Picture("failed", "failed"),
        Picture(
            "failed-edit", f"failed/{first}", prepare=lambda page: page.locator("details summary").click()
        ),
        Picture("failed-edit-zh", f"failed/{first}", chinese=True, prepare=_opened),
        Picture("reviews", "reviews"),
        Picture("voices-zh", "reviews", chinese=True, prepare=_charts),
        Picture("reviews-phone-zh", "reviews", _PHONE, chinese=True),
        Picture("review", f"reviews/{repost}"),
        Picture("products", "products", dark=True),
        Picture("product-zh", "products/1", chinese=True),
        Picture("schedules", "schedules"),
        Picture("schedules-phone-zh", "schedules", _PHONE, chinese=True),
        Picture("nodes", "nodes", chinese=True),
        Picture("sites", "sites"),
        Picture("site", site, dark=True),
        Picture("rule-trial", "sites/12315.com", prepare=_rules_tried),
        Picture("audit", "audit"),
    ]


def _opened(page: Page) -> None:
    page.locator("details summary").click()


def _charts(page: Page) -> None:
    for one in page.locator("details summary").all():
        one.click()


def _rules_tried(page: Page) -> None:
    page.locator("textarea[name=text]").fill(_TRIED)
    page.locator("form:has(textarea[name=text]) button").first.click()
    page.wait_for_load_state()


def add_schedules(store: Store) -> None:
    """A report, an export and a recrawl, where there is no schedule."""
    with store.read() as conn:
        if schedules.listed(conn):
            return
    now = datetime.now(UTC)
    for kind, cron, every, given in (
        (ScheduleKind.REPORT, "0 8 * * 1", None, {"to": "mailto:boss@example.cn"}),
        (
            ScheduleKind.EXPORT,
            "30 9 * * *",
            None,
            {"to": "https://hooks.example.cn/reviews", "format": "xlsx"},
        ),
        (ScheduleKind.RECRAWL, "0 2 1 * *", None, {}),
    ):
        rule = rule_of(cron, "Asia/Shanghai", every, now)
        usual = {"to": None, "format": None, "products": (), "private": False}
        schedule_actions.add(store, kind, rule, usual | given, "boss")


def main(db: str, folder: str, *names: str) -> None:
    """Make those that are named, or all."""
    settings = Settings(database_url=database(db), sites="paper-2014")
    store = Store.open(settings.database_url)
    add_schedules(store)
    with (
        listening_near(8790) as sock,
        serving(settings, store, sock) as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=str(find_chromium("")), args=["--no-sandbox", "--disable-gpu"]
        )
        for one in pictures(store):
            if not names or one.name in names:
                _take(browser, address, one, Path(folder))
        browser.close()
    store.close()


def _take(browser: object, address: str, one: Picture, folder: Path) -> None:
    context = browser.new_context(  # type: ignore[attr-defined]
        viewport={"width": one.size[0], "height": one.size[1]},
        color_scheme="dark" if one.dark else "light",
        locale="zh-CN" if one.chinese else "en-US",
    )
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(address + one.path + ("?lang=zh" if one.chinese else "?lang=en"))
    one.prepare(page)
    height = min(page.evaluate("document.documentElement.scrollHeight"), _TALLEST[one.size])
    taken = page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": one.size[0], "height": height})
    picture = Image.open(io.BytesIO(taken)).convert("RGB")
    path = folder / f"{one.name}.png"
    picture.quantize(_COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size / 1000:.0f} KB")
    context.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
