"""`insight themes` and `insight rising`, on a product with a contamination in its last weeks and one without."""

from __future__ import annotations

import html
import json
import shutil
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from types import SimpleNamespace

import pytest
from insight_world import CLEAN, CONTAMINATED_WEEKS, GROUPS, SPOILT, TEXT, TODAY, fill

from app.insight import themes as insight_themes
from app.insight.counts import Selection
from app.insight.details import list_limits
from app.insight.findings import list_findings
from app.insight.periods import read_period
from app.insight.product import read_product
from app.insight.quotes import widen_quote
from app.insight.sites import find_sites_with_praise
from app.insight.themes import list_rises, list_themes
from app.insight.weekly import WEEKS, find_cutoffs, find_rises, load_weekly
from app.reports.product_choice import ProductChoice
from app.reports.product_list import (
    ListOrder,
    ProductGrouping,
    ProductSort,
    load_figures,
    load_trends,
    read_product_list,
)
from app.reports.report import report
from app.run import sweep_wiring
from app.run.version import MIGRATIONS
from app.views.moments import local_time
from splitter.catalog.load import builtin
from splitter.catalog.names import Group
from tasks.domain.reasons import Reason, because
from tasks.domain.themes import ALL_THEMES
from tasks.jobs.alerting import find_facts
from tasks.scheduling.alerting import AlertFacts, AlertRules, OpenAlert, RisingTheme, alerts_on
from tasks.store.content import counted_reviews, numbered_imports
from tasks.store.content.numbered_imports import ImportKind
from tasks.store.queries import themes
from tasks.store.queries.themes import Period, ReviewWeek, monday_of, week_of
from tasks.store.queue.upkeep import load_value, store_value
from tasks.store.sql import schema
from tasks.store.sql.database import Store

CATALOG = builtin("paper-2014")
NOW = datetime(2026, 11, 28, 4, tzinfo=UTC)


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """A store with 104 weeks of two products."""
    url = f"sqlite:///{tmp_path_factory.mktemp('insight') / 'r.db'}"
    store = Store.open(url)
    with closing(store):
        schema.upgrade(store, MIGRATIONS)
        fill(store)
    return url


@pytest.fixture
def tx(database):
    store = Store.open(database)
    with closing(store), store.read() as tx:
        yield tx


def rows_of(view, product):
    return {row.theme: row for row in view.themes if row.product == product}


def test_themes_have_counts_shares_days_and_quotes(tx):
    view = list_themes(tx, {1: CLEAN, 2: SPOILT}, Period(), TODAY, GROUPS)
    assert set(rows_of(view, CLEAN)) == {"service", "delivery", "price"}
    found = rows_of(view, SPOILT)["foreign_matter"]
    ((n, first, last),) = tx.rows(
        "SELECT count(*), min(day), max(day) FROM reviews WHERE themes LIKE '%foreign_matter%'"
    )
    assert (found.complaints, found.undated) == (n, 3)
    assert (found.first_day, found.last_day) == (date.fromisoformat(first), date.fromisoformat(last))
    ((at_shop, buyers),) = tx.rows(
        "SELECT sum(CASE WHEN r.themes LIKE '%foreign_matter%' THEN 1 ELSE 0 END), count(*) FROM reviews r "
        "JOIN page_products l ON l.page_id = r.page_id WHERE r.site = 'jd.com' AND l.product_id = 2"
    )
    assert found.share == at_shop / buyers
    assert view.sites_without_share == ["12315.com"]
    assert view.undated == 3
    assert [(quote.text, quote.day) for quote in found.quotes] == [(TEXT[2:11], found.last_day)]
    assert len(found.trend) == 26
    assert sum(found.trend) == sum(
        1 for (day,) in tx.rows("SELECT day FROM reviews WHERE themes LIKE '%foreign_matter%' AND day IS NOT NULL")
        if week_of(date.fromisoformat(day)) < week_of(TODAY)
    )  # fmt: skip


@pytest.mark.parametrize("days", [1, 7, 30, 90, 365])
def test_a_period_holds_the_reviews_of_its_days(tx, days):
    period = Period(TODAY - timedelta(days=days), TODAY)
    view = list_themes(tx, {1: CLEAN, 2: SPOILT}, period, TODAY, GROUPS)
    n = tx.value(
        "SELECT count(*) FROM reviews WHERE themes IS NOT NULL AND day >= :first AND day <= :last",
        first=period.since.isoformat(),
        last=TODAY.isoformat(),
    )
    assert sum(row.complaints for row in view.themes) == n
    assert sum(row.undated for row in view.themes) == 0


@pytest.mark.parametrize("groups", [GROUPS, {}])
def test_series_are_the_reviews_counted_one_by_one(tx, groups):
    weekly = load_weekly(tx, [1, 2], TODAY, groups)
    week = f"(day + 3) / 7 - {weekly.last_week - WEEKS + 1}"
    where = f"day >= 0 AND {week} < {WEEKS}"
    reviews = tx.rows(f"SELECT product_id, site, {week}, voice FROM review_days WHERE {where}")
    themes = tx.rows(
        f"SELECT product_id, theme, site, {week} FROM review_themes WHERE sentiment < 0 AND {where}"
    )
    themes += [(*one[:1], ALL_THEMES, *one[1:3]) for one in reviews if one[1::2] == ("jd.com", "complaint")]
    assert weekly.keys == sorted({one[:2] for one in themes})
    for row, key in enumerate(weekly.keys):
        found = [one[2:] for one in themes if one[:2] == key]
        sites = {"jd.com"} if key[1] == ALL_THEMES else {site for site, _ in found}
        counts, others, every = ([0] * WEEKS for _ in range(3))
        for _, at in found:
            counts[at] += 1
        for product_id, site, at, _ in reviews:
            others[at] += product_id == key[0] and site in sites
            every[at] += product_id == key[0]
        series = weekly.series
        assert series.counts[row].tolist() == counts
        assert series.others[row].tolist() == [n - m for n, m in zip(others, counts, strict=True)]
        assert series.has_reviews[row].tolist() == [n > 0 for n in every]


def test_the_contamination_rises_and_nothing_else(tx):
    view = list_rises(tx, TODAY, GROUPS)
    (rise,) = view.rises
    assert (rise.product, rise.theme) == (SPOILT, "foreign_matter")
    began = TODAY - timedelta(weeks=CONTAMINATED_WEEKS)
    assert began <= rise.since <= began + timedelta(weeks=4)
    assert rise.count > 3 * rise.baseline
    assert rise.p_value < 1e-4
    assert view.until == monday_of(week_of(TODAY)) - timedelta(days=1)
    states = {row.theme: row.state for row in list_themes(tx, {2: SPOILT}, Period(), TODAY, GROUPS).themes}
    assert states.pop("foreign_matter") == "rising"
    assert set(states.values()) == {"ongoing"}


@pytest.mark.parametrize("weeks", [0, 1, 2, 3])
def test_a_rise_that_ends_has_the_p_value_of_its_surest_week(tx, weeks):
    (began,) = list_rises(tx, TODAY, GROUPS).rises
    (rise,) = list_rises(tx, TODAY + timedelta(weeks=weeks), GROUPS).rises
    assert (rise.since, rise.weeks) == (began.since, began.weeks + weeks)
    assert rise.since <= rise.surest < rise.since + timedelta(weeks=rise.weeks)
    assert rise.p_value <= began.p_value < 1e-4
    shop = "SELECT day FROM reviews WHERE themes LIKE '%foreign_matter%' AND day IS NOT NULL"
    days = [date.fromisoformat(day) for (day,) in tx.rows(shop)]
    last = week_of(TODAY) - 1 + weeks
    assert rise.newest == sum(week_of(day) == last for day in days)
    assert rise.count == sum(last - 3 <= week_of(day) <= last for day in days)
    assert rise.usual_weeks == sum(
        sum(week - 3 <= week_of(day) <= week for day in days) <= 1 for week in range(last - 3, last + 1)
    )


@pytest.fixture(scope="module")
def general(tmp_path_factory, database):
    """A store in which half of the praise about the first product becomes complaints in the last 6 weeks."""
    file = tmp_path_factory.mktemp("general") / "r.db"
    shutil.copy(database.removeprefix("sqlite:///"), file)
    with closing(Store.open(f"sqlite:///{file}")) as store, store.begin() as tx:
        product = "page_id IN (SELECT page_id FROM page_products WHERE product_id = 1)"
        turned = f"{product} AND voice = 'praise' AND id % 2 = 0 AND day >= '{TODAY - timedelta(weeks=6)}'"
        numbers = [number for (number,) in tx.rows(f"SELECT id FROM reviews WHERE {turned}")]
        with counted_reviews.recount(tx, reviews=numbers):
            tx.run(f"UPDATE reviews SET voice = 'complaint' WHERE {turned}")
    return f"sqlite:///{file}"


@pytest.mark.parametrize("are_read", [True, False])
def test_all_complaints_rise_together_without_any_theme(general, are_read, reviewloop):
    with closing(Store.open(general)) as store:
        with store.begin() as tx:
            if not are_read:  # such as reviews of apps
                numbers = [number for (number,) in tx.rows("SELECT id FROM reviews")]
                with counted_reviews.recount(tx, reviews=numbers):
                    tx.run("UPDATE reviews SET themes = NULL")
            found = {row.product: row for row in list_rises(tx, TODAY, GROUPS).rises if row.theme == "all"}
            view = read_product(tx, (1, CLEAN), Selection(Period()), TODAY, GROUPS)
            chosen = read_product(tx, (1, CLEAN), Selection(Period(), theme="service"), TODAY, GROUPS)
            page = report(tx, CATALOG, (CLEAN,))
        rise = found[CLEAN]
        assert view.themes.rises_of_all == [rise]
        assert rise.count > 2 * rise.baseline
        assert {quote.site for quote in rise.quotes} == {"jd.com"}
        assert {quote.text for quote in rise.quotes} == {TEXT[2:11] if are_read else TEXT}
        (finding,) = [one for one in list_findings(view) if one.kind == "all_rising"]
        assert list_findings(view)[1] == finding
        assert f"since the week of {rise.since}, for {rise.weeks} weeks: {rise.count} in" in str(finding)
        assert "all_rising" not in {one.kind for one in list_findings(chosen)}
        assert any(
            "can't be distinguished from more coverage: 12315.com" in str(one) for one in list_limits(view)
        )
        assert str(finding) in html.unescape(page)
        assert f"<q>{rise.quotes[0].text}</q>" in page.split('class="product"')[0]
        fact = RisingTheme(CLEAN, "all", rise.since, rise.count, rise.baseline, [("坏了", "http://a/1")])
        (alert,) = alerts_on(AlertRules(rising=3), AlertFacts(looking_since=NOW, rises=[fact]), NOW, {})
        assert "complaints in all rise since" in str(alert.because)
        printed = reviewloop("insight", "rising", "--db", general).stdout
        assert f"{CLEAN}: Complaints in all have been rising" in " ".join(printed.split())


@pytest.mark.parametrize("count", [9, 3, 2, 1, 0])
def test_an_alert_stays_on_until_the_rise_has_ended(count):
    rises = [RisingTheme(SPOILT, "safety", TODAY, count, 0.1, [])]
    facts = AlertFacts(looking_since=NOW, rises=rises)
    first = alerts_on(AlertRules(rising=3), facts, NOW, {})
    assert len(first) == (count >= 3)
    on = OpenAlert("rising", f"{SPOILT}: safety", because(Reason.OTHER, text=""), since=NOW)
    assert len(alerts_on(AlertRules(rising=3), facts, NOW, {on.key: on})) == 1
    ended = replace(facts, rises=())
    assert alerts_on(AlertRules(rising=3), ended, NOW, {on.key: on}) == []


def test_stored_cutoffs_decide_for_a_product(database):
    store = Store.open(database)
    with closing(store):
        with store.read() as tx:
            found = find_rises(tx, TODAY, GROUPS)
            states = [row.state for row in list_themes(tx, {2: SPOILT}, Period(), TODAY, GROUPS).themes]
        for cutoffs, is_rising in (([0.0] * WEEKS, False), (found.cutoffs, True)):
            with store.begin() as tx:
                data = {"last_week": found.last_week, "cutoffs": cutoffs}
                store_value(tx, themes.RISES, tx.now, data)
                view = list_themes(tx, {2: SPOILT}, Period(), TODAY, GROUPS)
                assert ("rising" in [row.state for row in view.themes]) is is_rising
                assert bool(list_rises(tx, TODAY, GROUPS).rises) is is_rising
                tx.run("DELETE FROM stored_values WHERE name = :name", name=themes.RISES)
    assert "rising" in states


@pytest.mark.parametrize("chosen", [(1,), (2,), (1, 2)])
def test_a_product_that_is_judged_alone_rises_only_if_it_does_among_all(tx, chosen, monkeypatch):
    among_all = find_rises(tx, TODAY, GROUPS)
    alone = find_cutoffs(load_weekly(tx, chosen, TODAY, GROUPS), themes.count_series(tx))
    assert len(alone) == WEEKS
    assert all(one <= other for one, other in zip(alone, among_all.cutoffs, strict=True))
    strict = find_cutoffs(load_weekly(tx, chosen, TODAY, GROUPS), 10**9)
    assert max(strict) < 1e-6
    monkeypatch.setattr(insight_themes, "find_rises", None)  # no page judges all products
    view = read_product(tx, (2, SPOILT), Selection(Period()), TODAY, GROUPS)
    assert view.themes.themes[0].rise == among_all.rises[2, "foreign_matter"]
    assert "judged_alone" in {one.kind for one in list_limits(view)}


def test_an_import_makes_the_stored_cutoffs_old_until_all_are_judged_again(database):
    with closing(Store.open(database)) as store, store.begin() as tx:
        hours = [tx.now + timedelta(hours=hour) for hour in range(5)]
        stored = {"last_week": 100, "cutoffs": [0.1], "rises": [{"product": SPOILT}]}
        number = numbered_imports.begin(tx, ImportKind.REVIEWS, "r.csv", "me")
        for stored_at, ended_at, is_known in ((1, None, True), (1, 2, False), (3, 2, True), (3, 4, False)):
            store_value(tx, themes.RISES, hours[stored_at], stored)
            at = None if ended_at is None else hours[ended_at]
            tx.run("UPDATE imports SET ended_at = :at WHERE id = :id", at=at, id=number)
            assert bool(themes.load_cutoffs(tx, 100)) is is_known
            assert themes.load_rises(tx) == stored["rises"], "alerts stay as they are"
        tx.run("DELETE FROM stored_values WHERE name = :name", name=themes.RISES)
        tx.run("DELETE FROM imports")


def test_weeks_since_the_stored_cutoffs_have_the_last_one(database):
    with closing(Store.open(database)) as store, store.begin() as tx:
        store_value(tx, themes.RISES, tx.now, {"last_week": 100, "cutoffs": [0.1, 0.2, 0.3]})
        found = {week: themes.load_cutoffs(tx, week) for week in (99, 100, 101, 102, 110)}
        tx.run("DELETE FROM stored_values WHERE name = :name", name=themes.RISES)
    assert found == {
        99: (),
        100: [0.1, 0.2, 0.3],
        101: [0.2, 0.3, 0.3],
        102: [0.3, 0.3, 0.3],
        110: [0.3, 0.3, 0.3],
    }


def test_postgresql_answers_alike(tx, postgres_store):
    fill(postgres_store)
    with postgres_store.read() as other:
        for period in (
            Period(),
            Period(TODAY - timedelta(days=90)),
            Period(None, TODAY - timedelta(days=90)),
        ):
            views = [list_themes(one, {1: CLEAN, 2: SPOILT}, period, TODAY, GROUPS) for one in (tx, other)]
            assert views[0] == views[1]
        assert list_rises(tx, TODAY, GROUPS) == list_rises(other, TODAY, GROUPS)
        for period in (
            Period(TODAY - timedelta(days=89), TODAY),
            Period(TODAY - timedelta(days=89)),
            Period(),
        ):
            for groups in (GROUPS, {}):
                figures = [load_figures(one, None, period, groups) for one in (tx, other)]
                assert figures[0] == figures[1]
        assert load_trends(tx, [1, 2], TODAY) == load_trends(other, None, TODAY)


@pytest.mark.parametrize("groups", [GROUPS, {}])
@pytest.mark.parametrize("days", ["7", "90", "all"])
def test_the_list_says_what_the_page_says(tx, groups, days):
    period = read_period(days, None, None).find(TODAY)
    figures = load_figures(tx, None, period, groups)
    assert load_figures(tx, [2], period, groups) == {2: figures[2]}
    trends = load_trends(tx, None, TODAY)
    for number, name in ((1, CLEAN), (2, SPOILT)):
        page = read_product(tx, (number, name), Selection(period), TODAY, groups)
        listed = figures[number]
        assert (listed.count.reviews, listed.count.complaints) == (page.reviews, page.complaints)
        assert (listed.change, listed.share) == (page.change, page.share)
        assert sum(trends[number]) == sum(one.complaints for one in page.weeks[-26:])


def test_products_are_sorted_and_summed(tx):
    order = ListOrder(most=1)
    choice = ProductChoice()

    def ask(order, days="all"):
        return read_product_list(tx, choice, order, read_period(days, None, None), CATALOG)

    names = [row.name for row in ask(ListOrder()).products]
    assert sorted(names) == sorted([SPOILT, CLEAN])
    assert [row.name for row in ask(ListOrder(is_reversed=True)).products] == names[::-1]
    assert [row.name for row in ask(order).products] == names[:1]
    assert [row.name for row in ask(replace(order, skip=1)).products] == names[1:]
    assert (ask(order).total, ask(ListOrder(skip=2)).products) == (2, [])
    for sort in ProductSort:
        rows = ask(ListOrder(sort=sort)).products
        values = [getattr(row, sort) for row in rows if getattr(row, sort) is not None]
        assert values == sorted(values, reverse=sort is not ProductSort.NAME)
    (group,) = ask(ListOrder(by=ProductGrouping.CATEGORY)).groups
    assert (group.name, group.products) == ("unknown", 2)
    assert group.complaints == sum(row.complaints for row in ask(ListOrder()).products)
    assert group.complaints_before is None
    brands = ask(ListOrder(by=ProductGrouping.BRAND), "90").groups
    assert sum(row.products for row in brands) == 2
    assert "光明" in {row.name for row in brands}


def test_the_sweep_judges_once_a_day_and_alerts_name_the_rise(database, monkeypatch):
    store = Store.open(database)
    with closing(store):
        judge = partial(sweep_wiring._judge_rises, store, SimpleNamespace(call=store.write), CATALOG)
        with store.read() as tx:
            today = local_time(tx.now).date()
        monkeypatch.setattr(
            insight_themes, "find_rises", lambda tx, _today, groups: find_rises(tx, TODAY, groups)
        )
        judge()
        with store.begin() as tx:
            assert load_value(tx, themes.RISES).data["last_week"] == week_of(TODAY) - 1
            (rise,) = themes.load_rises(tx)
            facts = find_facts(tx, AlertRules(rising=3), tx.now, {})
            (alert,) = alerts_on(AlertRules(rising=3), facts, tx.now, {})
            assert alert.subject == f"{SPOILT}: foreign_matter"
            assert f"{rise['count']} complaints in 4 weeks" in str(alert.because)
            assert rise["quotes"][0]["url"] in str(alert.because)
            assert alerts_on(AlertRules(rising=rise["count"] + 1), facts, tx.now, {}) == []
            tx.run("UPDATE stored_values SET data = '{}' WHERE name = :name", name=themes.RISES)
        judge()
        with store.begin() as tx:
            stored = load_value(tx, themes.RISES)
            assert stored.data == {}, "it was judged today"
            store_value(tx, themes.RISES, tx.now - timedelta(days=2), {})
        judge()
        with store.begin() as tx:
            stored = load_value(tx, themes.RISES)
            assert local_time(stored.at).date() >= today
            assert len(stored.data["cutoffs"]) == WEEKS
            tx.run("DELETE FROM stored_values WHERE name = :name", name=themes.RISES)


def test_the_commands_print_the_views(database, reviewloop):
    printed = reviewloop("insight", "themes", SPOILT, "--to", "2026-11-28", "--json", "--db", database)
    view = json.loads(printed.stdout)
    assert {row["product"] for row in view["themes"]} == {SPOILT}
    keys = {"product", "theme", "complaints", "share", "first_day", "last_day", "trend", "quotes"}
    assert keys <= view["themes"][0].keys()
    assert {"text", "day", "url", "review"} <= view["themes"][0]["quotes"][0].keys()
    text = reviewloop("insight", "themes", "--db", database).stdout
    assert CLEAN in text
    assert "Foreign matter" in text
    assert "have no date" in text
    rising = json.loads(reviewloop("insight", "rising", "--json", "--db", database).stdout)
    assert {"until", "rises", "counted"} == rising.keys()
    assert reviewloop("insight", "rising", "--db", database).exit_code == 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["themes", "不存在"], "there is no product '不存在'"),
        (["themes", "--from", "昨天"], "is no day; write 2026-05-01"),
        (["themes", "--to", "2026-02-30"], "is no day; write 2026-05-01"),
        (["themes", "--from", "2026-11-02", "--to", "2026-11-01"], "is before the first"),
        (["themes", "--days", "x"], "no number of days"),
    ],
)
def test_wrong_input_is_named(database, reviewloop, options, told):
    printed = reviewloop("insight", *options, "--db", database)
    assert printed.exit_code == 2
    assert told in printed.stderr


@pytest.mark.parametrize(
    ("group", "complaints", "praise", "publishes"),
    [
        (Group.SHOP, 9, 0, True),
        (Group.COMPLAINTS, 10, 90, False),
        (Group.NEWS, 10, 90, False),
        (None, 40, 9, False),
        (None, 40, 10, True),
        (None, 41, 10, False),
    ],
)
def test_a_site_publishes_praise_by_its_group_or_by_its_reviews(group, complaints, praise, publishes):
    weeks = [
        ReviewWeek(1, "a.cn", 2900, 99 + complaints, complaints, 0),
        ReviewWeek(1, "a.cn", 2901, praise, 0, praise),
        ReviewWeek(2, "a.cn", 2901, 1, 1, 0),
    ]
    found = find_sites_with_praise(weeks, {"a.cn": group})
    assert ((1, "a.cn") in found) is publishes
    assert ((2, "a.cn") in found) is (group is Group.SHOP)  # another product's praise is no help


@pytest.mark.parametrize(
    ("before", "clause", "after", "shown"),
    [
        ("", "喝到一半发现有黑色颗粒", "，第53次买了。", "喝到一半发现有黑色颗粒"),
        ("很失望。盒底沉着黑色的东西，", "是异物", "，第26次买了。", "盒底沉着黑色的东西，是异物"),
        ("很失望。", "比超市贵", "，价格虚高。", "比超市贵，价格虚高"),
        ("很失望！ ", "太贵", "", "太贵"),
        ("一" * 21 + "，压扁", "漏奶", "。", "压扁漏奶"),
        ("一" * 24, "漏奶", "了" * 24, "漏奶"),
    ],
)
def test_a_short_quote_has_its_neighbours_word_for_word(before, clause, after, shown):
    assert widen_quote(before, clause, after) == shown
    assert shown in before + clause + after
