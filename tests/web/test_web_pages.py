"""Every page over HTTP: what it says, what it does, and that nothing of a crawled page runs in it."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from dashboard import Serve, Served
from sample_store import HOSTILE, OTHER, POOR, PRODUCT, SITE
from sqlalchemy import select, update

from app.lab.running import running_lab
from app.views.moments import local_time
from splitter.catalog.load import builtin
from tasks.store.queries.themes import RISES, number_of_day
from tasks.store.queue import nodes as node_rows
from tasks.store.queue.hosts import Robots, save_robots
from tasks.store.queue.upkeep import store_value
from tasks.store.sql.tables import audit_log, nodes, pair_stats, subtasks

PAGES = (
    "/",
    "/matrix",
    "/matrix?measure=efficiency",
    "/matrix?measure=requests",
    f"/pairs/{SITE}/node1",
    f"/pairs/{SITE}/node2",
    "/failed",
    "/failed/3",
    "/audit",
    "/reviews",
    "/reviews?q=牛奶&product=1&from=2026-03-02",
    "/reviews/1",
    "/reviews/2",
    "/reviews/7",
    "/reviews/8",
    "/products",
    "/products/1",
    "/products/1?days=all",
    "/products/1/crawl",
    "/products/1/phrases",
    "/schedules",
    "/nodes",
    "/sites",
    f"/sites/{SITE}",
)


@pytest.mark.parametrize(
    ("language", "title"), [("en", "What buyers complain about"), ("zh", "买家投诉什么")]
)
def test_a_report_is_downloaded_in_the_readers_language(sample: Served, language: str, title: str) -> None:
    page = sample.get("/products/1/report?days=all", headers={"Accept-Language": language})
    assert page.headers["content-disposition"] == 'attachment; filename="report-1.html"'
    assert f"<h1>{title}</h1>" in page.text
    assert "<script" not in page.text
    assert f"<h2>{PRODUCT}</h2>" in page.text
    assert sample.get("/products/99/report").status_code == 404


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_page_is_whole_and_escapes_what_was_crawled(sample: Served, language: str) -> None:
    for path in PAGES:
        page = sample.get(path, headers={"Accept-Language": language})
        assert page.status_code == 200, path
        assert "<script>document" not in page.text, path
        assert "<img" not in page.text, path
        assert "\u202e" not in page.text, path
        assert " style=" not in page.text, path
        assert not re.search(
            r'(?:href|src|action)="(?:https?:|//|javascript:)',
            page.text.replace('href="http://12315.com', ""),
        ), path
        assert f'<html lang="{"zh-CN" if language == "zh" else "en"}">' in page.text
        assert page.text.count("<h1>") == page.text.count("<main") == 1, path


def test_a_subtasks_story_shows_the_last_response_as_text(sample: Served) -> None:
    text = sample.get("/failed/3").text
    assert "&lt;script&gt;document.title=" in text
    assert PRODUCT in text
    assert sample.get("/failed/999").status_code == 404
    assert sample.get("/failed/x").status_code == 422


@pytest.mark.parametrize(
    ("form", "states", "noted"),
    [
        ({"action": "retry", "subtask": ["3", "4"]}, {3: "WAIT", 4: "WAIT"}, "retry"),
        ({"action": "retry", "cause": f"blocked|{SITE}"}, {3: "WAIT", 4: "MANUAL"}, "retry"),
        ({"action": "assign", "subtask": "3", "node": "node1"}, {3: "WAIT", 4: "MANUAL"}, "assign"),
        ({"action": "abandon", "subtask": "3", "why": HOSTILE}, {3: "CANCELLED", 4: "MANUAL"}, "abandon"),
    ],
)
def test_actions_on_failed_tasks_are_done_and_noted(
    served: Served, form: dict[str, object], states: dict[int, str], noted: str
) -> None:
    answer = served.post(
        "/failed",
        data={
            **form,
        },
    )
    assert answer.status_code == 200
    with served.store.read() as tx:
        rows = tx.engine_connection.execute(
            select(subtasks.c.id, subtasks.c.state).where(subtasks.c.id.in_(states))
        )
        assert dict(map(tuple, rows)) == states
        row = tx.engine_connection.execute(select(audit_log)).one()
    assert (row.action, row.who) == (noted, "on this machine")
    log = served.get("/audit").text
    assert noted in log
    assert "<script>document" not in log


def test_a_failed_subtask_is_changed_and_noted(served: Served) -> None:
    assert 'name="quota"' in served.get("/failed/4").text
    form = {"quota": "7", "pages": ""}
    assert "Changed and tried again: 1 subtasks." in served.post("/failed/4/edit", data=form).text
    with served.store.read() as tx:
        row = tx.engine_connection.execute(select(subtasks).where(subtasks.c.id == 4)).one()
        noted = tx.engine_connection.execute(select(audit_log)).one()
    assert (row.state, row.assigned_quota) == ("WAIT", 7)
    assert (noted.action, noted.detail["quota"]) == ("edit", 7)
    wrong = served.post("/failed/4/edit", data={**form, "quota": "many"})
    assert (wrong.status_code, "no whole number" in wrong.text) == (400, True)


TRIED = f"""<html><head><title>{HOSTILE}</title></head><body><div class="post" id="p1"><h2 class="post-title">投诉
</h2><div class="post-body">{HOSTILE.replace("<", "&lt;")}
光明高钙牛奶喝了第一口就发现结块了，打电话给客服也没有人理会，要求退款并且赔偿
</div></div></body></html>"""


@pytest.mark.parametrize("language", ["en", "zh"])
def test_rules_are_tried_on_a_pasted_page_which_does_nothing(served: Served, language: str) -> None:
    form = {"text": TRIED, "product": PRODUCT}
    answer = served.post(f"/sites/{SITE}/try", data=form, headers={"Accept-Language": language})
    assert answer.status_code == 200
    assert "喝了第一口" in answer.text
    assert ("First records" if language == "en" else "前几条记录") in answer.text
    assert "<script>document" not in answer.text
    assert "<img" not in answer.text
    other = served.post(f"/sites/{SITE}/try", data={**form, "read_as": "result"})
    assert other.status_code == 200
    assert "<script>document" not in other.text
    by_others = served.post(f"/sites/{SITE}/try", data={**form, "rules": "complaint"})
    assert by_others.status_code == 200
    assert ("First records" if language == "en" else "前几条记录") not in by_others.text


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    "address",
    [
        "http://example..com/x",
        "http://user:Geh3im@example.com/",
        "http://user:Geh3im/W0rt@example.com/",
        "http://user:Geh3im#W0rt@example.com/",
        "http://user:Geh3im@example.com:99999/",
        "user:Geh3im@example.com",
        "Geh3im://example.com",
        "ftp://user:Geh3im@example.com/",
        "http://[Geh3im/",
        "http://Geh3im example.com/",
    ],
)
def test_a_wrong_address_in_the_form_is_refused_without_repeating_it(served, address, language):
    form = {"url": address}
    answer = served.post(f"/sites/{SITE}/try", data=form, headers={"Accept-Language": language})
    assert answer.status_code == 400
    assert "Geh3im" not in answer.text
    assert ("请写成 http://" if language == "zh" else "write http://HOST/PATH") in answer.text


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"url": "http://elsewhere.cn/"}, "nor its engine"),
        ({"url": "http://127.0.0.1/"}, "nor its engine"),
        ({"url": "nothing"}, ""),
        ({}, "Paste a page"),
        ({"text": "x", "rules": "no-such"}, "no rules"),
    ],
)
def test_a_page_that_is_not_the_sites_is_not_asked_for(
    served: Served, form: dict[str, str], why: str
) -> None:
    answer = served.post(
        f"/sites/{SITE}/try",
        data={
            **form,
        },
    )
    assert answer.status_code == 400
    assert why in answer.text


def test_a_page_is_asked_for_once_where_robots_permit_it(serve: Serve) -> None:
    with running_lab(builtin("paper-2014")) as lab:
        served = serve(lab=(lab.host, lab.port))
        form = {"url": f"http://{SITE}/tsdh/1.html"}
        assert served.post(f"/sites/{SITE}/try", data=form).status_code == 200
        with served.store.begin() as tx:
            robots = Robots(SITE, 200, "User-agent: *\nDisallow: /tsdh", datetime.now(UTC))
            save_robots(tx, robots)
        refused = served.post(f"/sites/{SITE}/try", data=form)
    assert refused.status_code == 400
    assert "refuses it" in refused.text


def test_what_cannot_be_done_is_said_and_not_noted(served: Served) -> None:
    text = served.post(
        "/failed",
        data={
            "action": "retry",
            "subtask": "1",
        },
    ).text
    assert "subtask 1 is in DONE" in text
    assert (
        "Nothing was chosen."
        in served.post(
            "/failed",
            data={
                "action": "retry",
            },
        ).text
    )
    wrong = served.post(
        "/failed",
        data={
            "action": "burn",
            "subtask": "3",
        },
    )
    assert (wrong.status_code, "there is no action" in wrong.text) == (400, True)
    with served.store.read() as tx:
        assert tx.engine_connection.execute(select(audit_log)).all() == []
        assert tx.engine_connection.execute(select(nodes.c.drained)).scalars().all() == [False, False]


def _numbers(text: str) -> list[int]:
    return [int(one) for one in re.findall(r'<h3><a href="/reviews/(\d+)"', text)]


_DATED = [
    (6, "2026-01-06 19:31", "2026-01-06 11:31:00.000000", "2026-01-06", True),
    (5, "2026-01-07", "2026-01-06 16:00:00.000000", "2026-01-07", False),
    (4, "Jan 6 11:31 PM EST", "2026-01-07 04:31:00.000000", "2026-01-06", True),
    (3, "long ago", None, None, False),
]


def test_a_filter_by_day_lists_the_reviews_of_that_day(served: Served) -> None:
    with served.store.begin() as tx:
        for number, text, at, day, clock in _DATED:
            tx.run(
                "UPDATE reviews SET date_text = :text, published_at = :at, day = :day, has_clock = :clock "
                "WHERE id = :number",
                **{"number": number, "text": text, "at": at, "day": day, "clock": clock},
            )
    sixth, seventh = (
        served.get(f"/reviews?from={day}&to={day}").text for day in ("2026-01-06", "2026-01-07")
    )
    assert _numbers(sixth) == [6, 4]
    assert "2026-01-06 19:31" in sixth
    assert "2026-01-06 (01-07 12:31 Asia/Shanghai)" in sixth
    assert _numbers(seventh) == [5]
    assert "2026-01-06" not in seventh
    assert "2026-01-07 00:00" not in seventh
    found = served.get("/api/reviews?from=2026-01-06&to=2026-01-07").json()["reviews"]
    assert [(row["review"], row["day"]) for row in found] == [
        (6, "2026-01-06"), (5, "2026-01-07"), (4, "2026-01-06")
    ]  # fmt: skip
    assert [row["day"] for row in served.get("/api/reviews").json()["reviews"] if row["review"] == 3] == [
        None
    ]


def test_reviews_are_searched_and_filtered(sample: Served) -> None:
    assert _numbers(sample.get("/reviews?days=all").text) == [8, 7, 6, 5, 4, 3, 2, 1]
    assert _numbers(sample.get("/reviews?days=all&q=第3次").text) == [3]
    assert _numbers(sample.get("/reviews?days=all&q=第3次 变质").text) == [3]
    assert _numbers(sample.get("/reviews?days=all&q=第3次 没有这个").text) == []
    assert _numbers(sample.get("/reviews?days=all&q=ONERROR").text) == [1]
    wildcard = sample.get("/reviews?days=all&q=%25").text
    assert _numbers(wildcard) == []  # it is a character as any other
    assert _numbers(sample.get("/reviews?from=2026-03-06&to=2026-03-07").text) == [6, 5]
    assert _numbers(sample.get(f"/reviews?days=all&site={SITE}&product=2").text) == []
    assert _numbers(sample.get("/reviews?days=all&voice=praise").text) == [5]
    assert "<mark>变质</mark>" in sample.get("/reviews?days=all&q=变质").text
    assert _numbers(sample.get("/reviews?days=90").text) == []


CHOSEN = re.compile('aria-current="true">([^<]+)</a>')


@pytest.mark.parametrize(("age", "shown"), [(None, "All"), (90, "All"), (89, "90 days"), (0, "90 days")])
def test_the_usual_period_is_the_recent_days_unless_no_review_is_that_new(
    served: Served, age: int | None, shown: str
) -> None:
    if age is not None:
        with served.store.begin() as tx:
            day = number_of_day(local_time(tx.now).date()) - age
            tx.run("UPDATE review_days SET day = :day WHERE review_id = 5", day=day)
    for path in ("/", "/products", "/products/1", "/reviews"):
        assert shown in CHOSEN.findall(served.get(path).text), path
    assert "7 days" in CHOSEN.findall(served.get("/products/1?days=7").text)


@pytest.mark.parametrize("path", ["/", "/products"])
def test_a_rise_leaves_the_pages_when_its_theme_is_archived_and_stays_if_it_rises_later(
    served: Served, path: str
) -> None:
    with served.store.begin() as tx:
        today = local_time(tx.now).date()
        days = [today + timedelta(days=n) for n in (-60, -40, 7)]
        themes = ("safety", "service", "packaging_damage")
        rises = [
            {"product": PRODUCT, "theme": theme, "since": day.isoformat()}
            for theme, day in zip(themes, days, strict=True)
        ]
        stored = {"last_week": 0, "cutoffs": [0.0], "rises": [*rises, {**rises[1], "product": "gone"}]}
        store_value(tx, RISES, tx.now, stored)
    for theme in ("safety", "packaging_damage"):
        assert served.post("/products/1/archive", data={"theme": theme}).status_code == 200
    text = served.get(path).text
    assert [day.isoformat() in text for day in days] == [False, True, True]
    assert "gone" not in text


def test_a_review_tells_where_it_came_from_and_what_it_repeats(sample: Served) -> None:
    text = sample.get("/reviews/7").text
    assert "complaint</a> 87%" in text
    assert "The same text as review 6." in text
    assert "93%" in text
    assert "<dt>Confidence of the reading</dt><dd>43%" in text
    assert f'href="http://{SITE}/7" rel="noopener noreferrer nofollow"' in text
    assert "Review 7 has the same text" in sample.get("/reviews/6").text
    assert 'href="javascript' not in sample.get("/reviews/2").text
    assert sample.get("/reviews/99").status_code == 404


def test_a_site_says_how_many_of_its_pages_were_read_with_low_confidence(sample: Served) -> None:
    assert "<dt>Pages read with low confidence</dt><dd>7 of 7</dd>" in sample.get(f"/sites/{SITE}").text
    assert "low confidence" not in sample.get(f"/sites/{POOR}").text


def test_products_are_previewed_and_added(served: Served) -> None:
    form = {"names": f"蒙牛早餐奶\n{PRODUCT}\n:::"}
    preview = served.post("/products/preview", data=form).text
    assert "蒙牛, 早餐奶" in preview
    assert "1 will be added, 1 are there already, 1 are refused." in preview
    assert served.get("/api/products").json()["total"] == 2  # nothing is stored yet
    draft = re.search(r'name="draft" value="([^"]+)"', preview)
    assert draft is not None
    text = served.post("/products", data={"draft": draft[1]}).text
    assert "1 product added." in text
    assert f"{PRODUCT} is there already." in text
    assert served.get("/products/3").status_code == 200
    old = served.post("/products", data={"draft": "gone"})
    assert (old.status_code, "too old" in old.text) == (400, True)


def test_a_file_of_products_is_refused_or_said_how_it_was_read(sample: Served) -> None:
    form = {}
    table = "监测清单\n序号,商品名称\n1,特仑苏\n合计,\n".encode("gb18030")
    preview = sample.post("/products/preview", data=form, files={"file": ("产品.csv", table)})
    assert "header in row 2, columns 商品名称" in preview.text
    assert "headings: rows 4" in preview.text
    refused = sample.post("/products/preview", data=form, files={"file": ("产品.xlsx", b"PK\x03\x04")})
    assert (refused.status_code, "产品.xlsx: is no xlsx" in refused.text) == (400, True)


def test_columns_of_an_uploaded_file_are_ignored_and_its_cells_counted(served: Served) -> None:
    table = "商品名称,优先级,平台,类别,备注\n荣耀手环,高,线下,,x\n雀巢咖啡,看情况,,食品,y\n".encode("gb18030")
    file = {"file": ("产品.csv", table)}
    form = {"category": "appliance"}
    preview = served.post("/products/preview", data=form, files=file).text
    assert "not used: 备注" in preview
    assert "优先级: not understood (rows: 3), for example 看情况; the priority is 0" in preview
    assert preview.count("added paused") == 1
    assert re.findall(r'<option value="(\w+)" selected>', preview) == ["appliance", "food"]
    chinese = served.post("/products/preview?lang=zh", data=form, files=file).text
    assert "“优先级”列有看不懂的内容（第 3 行），如 看情况；优先级按 0" in chinese
    served.post("/products/preview?lang=en", data=form, files=file)
    preview = served.post("/products/preview", data={**form, "ignore": "平台，优先级、备注"}, files=file).text
    assert not re.search("not used|not understood|added paused", preview)
    draft = re.search(r'name="draft" value="([^"]+)"', preview)
    assert draft is not None
    assert "2 products added." in served.post("/products", data={"draft": draft[1]}).text
    refused = served.post("/products/preview", data={**form, "ignore": "价格"}, files=file)
    assert (refused.status_code, "no column &#39;价格&#39; to ignore" in refused.text) == (400, True)


def test_a_schedule_is_paused_resumed_and_run(served: Served) -> None:
    text = served.get("/schedules").text
    assert "report to https://hooks.example.cn/..." in text
    assert "0 8 * * 1 Asia/Shanghai" in text
    assert "T0KEN" not in text
    form = {"number": "1"}
    text = served.post("/schedules", data={**form, "action": "pause"}).text
    assert "is paused." in text
    assert 'value="resume"' in text
    assert "is resumed." in served.post("/schedules", data={**form, "action": "resume"}).text
    assert re.search(r"<td>due", served.post("/schedules", data={**form, "action": "run"}).text)
    assert served.post("/schedules", data={**form, "number": "9", "action": "run"}).status_code == 404
    log = served.get("/audit", headers={"Accept-Language": "zh"}).text
    assert all(word in log for word in ("暂停定时任务", "恢复定时任务", "运行定时任务"))


_AS_SHOWN = {
    "name": PRODUCT,
    "name_shown": PRODUCT,
    "category_shown": "",
    "keywords": "光明, 牛奶",
    "keywords_shown": "光明, 牛奶",
    "priority": "0",
    "priority_shown": "0",
    "recrawl": "never",
    "recrawl_shown": "never",
}


def _open_of(served: Served, product: int) -> int:
    with served.store.read() as tx:
        open_ = subtasks.c.state.not_in(["DONE", "CANCELLED"]) & (subtasks.c.product_id == product)
        return len(tx.engine_connection.scalars(select(subtasks.c.id).where(open_)).all())


def test_a_product_is_renamed_and_gets_a_category(served: Served) -> None:
    form = {
        **_AS_SHOWN,
    }
    said = served.post("/products/1/edit", data={**form, "name": " 光明鲜牛奶 "}).text
    assert "光明鲜牛奶 is changed; 0 subtasks were cancelled." in said
    assert '<option value="">' in said
    form |= {"name": "光明鲜牛奶", "name_shown": "光明鲜牛奶"}
    said = served.post("/products/1/edit", data={**form, "category": "food"}).text
    assert "4 subtasks were cancelled." in said
    assert re.search(r'<dt>Category</dt><dd>food</dd>.*<option value="food" selected>', said, re.DOTALL)
    assert '<option value="">' not in said
    assert "<td>食品</td>" in served.get("/products", headers={"Accept-Language": "zh"}).text
    (row, *_) = served.get("/api/products?sort=name").json()["products"]
    assert (row["name"], row["category"], row["reviews"]) == ("光明鲜牛奶", "food", 7)


def test_products_that_are_one_are_counted_under_one_name(served: Served) -> None:
    chosen = {"product": ["1", "2"], "to_counted_as": OTHER}
    assert "Products changed: 1; so already: 1" in served.post("/products/edit", data=chosen).text
    rows = {row["name"]: row for row in served.get("/api/products?days=all").json()["products"]}
    assert [rows[name]["counted_as"] for name in (PRODUCT, OTHER)] == [OTHER, None]
    assert rows[PRODUCT]["complaints"] == 0 < rows[OTHER]["complaints"]
    assert f'counted as <a href="/products/2">{OTHER}</a>' in served.get("/products").text
    page = served.get("/products/1").text
    assert f'counted as <a href="/products/2">{OTHER}</a>' in page
    assert f'product=1&amp;days=all">{PRODUCT}</a>' in served.get("/products/2").text
    both, own = [served.get(f"/reviews?days=all&product={n}").text for n in (2, 1)]
    counts = [int(re.search(r"(\d+) reviews match", text)[1]) for text in (both, own)]
    assert counts[0] > counts[1] > 0
    assert f"With the reviews of: {PRODUCT}" in served.get("/products/1/report?days=all").text
    form = {**_AS_SHOWN, "counted_as_shown": OTHER}
    refused = served.post(
        "/products/2/edit", data={**_AS_SHOWN, "name": OTHER, "name_shown": OTHER, "counted_as": PRODUCT}
    )
    assert (refused.status_code, "counted as this product itself" in refused.text) == (400, True)
    assert "is changed" in served.post("/products/1/edit", data={**form, "counted_as": " "}).text
    assert served.get("/api/audit").json()[0]["detail"] == {"counted_as": "none", "cancelled": 0}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": f"{OTHER} "}, f"已有产品“{OTHER}”；请换一个名称"),
        ({"name": " "}, "产品名称为空"),
        ({"name": "250ml"}, "得不到关键词"),
    ],
)
def test_a_wrong_name_of_a_product_is_refused_in_plain_words(
    served: Served, wrong: dict[str, str], said: str
) -> None:
    form = {**_AS_SHOWN, **wrong}
    refused = served.post("/products/1/edit", data=form, headers={"Accept-Language": "zh"})
    assert (refused.status_code, said in html.unescape(refused.text)) == (400, True), refused.text
    assert served.post("/products/1/edit", data={**form, "category": "fish"}).status_code == 422
    assert served.get("/api/audit").json() == []


def test_a_wrong_change_of_a_product_is_refused_and_not_noted(served: Served) -> None:
    form = {
        **_AS_SHOWN,
    }
    wrong = served.post("/products/1/edit", data={**form, "recrawl": "soon"})
    assert (wrong.status_code, "is no period" in wrong.text) == (400, True)
    assert served.post("/products/1/edit", data={**form, "priority": "high"}).status_code == 422
    assert served.post("/products/9/edit", data={**form, "priority": "1"}).status_code == 404
    assert served.post("/products/9/remove", data={**form, "sure": "yes"}).status_code == 404
    assert served.get("/api/audit").json() == []


def test_a_product_is_removed_by_who_is_sure_and_added_again(served: Served) -> None:
    assert "4 subtasks would be cancelled." in served.get("/products/1/crawl").text
    assert served.post("/products/1/remove", data={}).status_code == 422
    assert _open_of(served, 1) == 4
    said = served.post("/products/1/remove", data={"sure": "yes"}).text
    assert f"{PRODUCT} is no longer collected; 4 subtasks were cancelled." in said
    assert "no longer collected, or added by an import" in said
    assert "/products/1/remove" not in said
    assert "not collected" in served.get("/products").text
    assert _numbers(served.get("/reviews?days=all&product=1").text) == [7, 6, 5, 4, 3, 2, 1]  # they stay
    assert [one["action"] for one in served.get("/api/audit").json()] == ["remove product"]
    preview = served.post("/products/preview", data={"names": PRODUCT}).text
    draft = re.search(r'name="draft" value="([^"]+)"', preview)
    assert draft is not None
    assert "1 product added." in served.post("/products", data={"draft": draft[1]}).text
    assert "not collected" not in served.get("/products").text


def test_slots_of_a_node_add_up(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    with served.store.read() as tx:
        first, second = node_rows.list_nodes(tx)
        now = tx.now
    loads = ((0, 0), (3, 1), (9, 2), (4, 0), (2, 5))
    rows = [
        replace(first, name=f"n{n}", seen_at=now, running=running, idle=idle)
        for n, (running, idle) in enumerate(loads)
    ]
    monkeypatch.setattr("app.views.nodes.nodes.list_nodes", lambda _: [*rows, replace(second, running=3)])
    *alive, silent = served.get("/api/nodes").json()["nodes"]
    for row in alive:
        assert row["working"] + row["free"] == row["slots"] == 4
        assert row["working"] + row["paused"] == row["running"]
    assert [row["working"] for row in alive] == [0, 2, 4, 4, 0]
    assert (silent["working"], silent["paused"], silent["free"]) == (0, 3, 0)
    page = served.get("/nodes").text
    assert page.count('value="drain"') == 6
    assert "<section" not in page


def test_the_matrix_says_once_that_attempts_are_too_few(served: Served) -> None:
    with served.store.begin() as tx:
        tx.engine_connection.execute(update(pair_stats).values(attempts=1))
    text = served.get("/matrix").text
    assert "3 pairs of a site and a node have fewer than 3 attempts" in text
    assert "too few attempts to tell" not in text
    assert served.get(f"/sites/{SITE}").text.count("node1, node2: too few attempts to tell.") == 1


def test_a_node_is_drained_and_resumed(served: Served) -> None:
    assert "node1 is drained" in served.post("/nodes", data={"node": "node1", "action": "drain"}).text
    assert "Resume" in served.get("/nodes").text
    assert "in service" in served.post("/nodes", data={"node": "node1", "action": "resume"}).text
    assert served.post("/nodes", data={"node": "none", "action": "drain"}).status_code == 404
    with served.store.read() as tx:
        assert list(tx.engine_connection.scalars(select(audit_log.c.action))) == ["drain", "resume"]


def test_the_language_is_chosen_by_query_cookie_and_browser(sample: Served) -> None:
    assert '<html lang="zh-CN">' in sample.get("/?lang=zh").text
    assert '<html lang="zh-CN">' in sample.get("/").text  # the cookie remembers
    sample.session.cookies.clear()
    assert '<html lang="zh-CN">' in sample.get("/", headers={"Accept-Language": "zh-TW,en;q=0.5"}).text
    assert '<html lang="en">' in sample.get("/", headers={"Accept-Language": "de"}).text


def test_filters_change_the_charts_of_reviews_and_never_remove_them(sample: Served) -> None:
    texts = {
        asked: sample.get(f"/reviews?days={asked}").text
        for asked in (
            "all",
            "all&voice=complaint",
            "all&site=shop.example",
            "all&q=牛奶",
            "7",
            "all&q=nowhere",
        )
    }
    counted = {path: int(re.findall(r"(\d+) reviews match", text)[0]) for path, text in texts.items()}
    for text in texts.values():
        assert text.count("<figure>") == 3
    assert counted["all&q=nowhere"] == 0
    assert counted["all"] > 1
    assert 0 < counted["all&voice=complaint"] < counted["all"]
    assert 0 < counted["all&site=shop.example"] < counted["all"]
    assert "only the newest 50,000 reviews are searched" in texts["all&q=牛奶"]


def test_a_phrase_is_adopted_on_its_page(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    served = serve()
    english = {"Accept-Language": "en"}
    refused = served.post(
        "/products/1/phrases",
        data={"phrase": "拉丝状", "new_theme": "Stringy", "zh": "拉丝", "en": "x"},
        headers=english,
    )
    assert "write an id of small letters" in refused.text
    assert 'value="拉丝状"' in refused.text
    assert not (tmp_path / "themes.yaml").exists()
    given = {"phrase": "拉丝状", "new_theme": "stringy", "zh": "拉丝", "en": "Stringy <milk>"}
    adopted = served.post("/products/1/phrases", data=given, headers=english)
    assert "Stringy &lt;milk&gt; has the term 拉丝状 now" in adopted.text
    assert "stringy" in (tmp_path / "themes.yaml").read_text("utf-8")
    again = served.post("/products/1/phrases", data={"phrase": "拉丝状", "theme": "stringy"}, headers=english)
    assert "already" in again.text
