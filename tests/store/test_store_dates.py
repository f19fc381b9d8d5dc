"""The date texts of stored records are read again: days that an older version read, interrupted, or only tried."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, time, timedelta
from functools import partial

import pytest
from world import CATALOG, SITE, hit

from splitter.spans import CHINA, get_zone
from tasks.domain.pages import Review
from tasks.jobs import judging
from tasks.jobs.date_reading import DatesRead, read_again
from tasks.jobs.judging import Pass, go_through
from tasks.reading.dates import read_date
from tasks.store.content import imports, products
from tasks.store.content.imports import ImportedReview, review_key
from tasks.store.content.imports import page_of as page_of_import
from tasks.store.queries.review_counts import count_reviews
from tasks.store.queries.reviews import ReviewFilter, list_reviews
from tasks.store.sql.tables import pages as page_table
from tasks.store.sql.tables import products as product_table
from tasks.store.sql.tables import reviews

OLD = datetime(2020, 2, 2, 2, tzinfo=UTC)


def save(world, dates, number="1"):
    """Store a page with a record for each date text and its day."""
    records = [
        Review(str(n), "", f"牛奶有点酸，第{n}次买了", "小明", text, day, None)
        for n, (text, day) in enumerate(dates.items())
    ]
    world.stored_page(number, records, url=hit(number), words=("光明", "牛奶"), refresh=timedelta())


def read_dates(world, progress=lambda _: None, **how):
    one = Pass(mark="dates", again=True, **how)
    return go_through(world.store, partial(read_again, CATALOG), one, DatesRead(), progress)


def days(world):
    return {row.date_text: row.published_at for row in world.rows(reviews)}


def in_china(*day):
    return datetime(*day, tzinfo=CHINA)


def test_days_that_an_older_version_read_are_read_again(world):
    fetched = world.now.astimezone(CHINA)
    later = {
        "2023 Jan 7": in_china(2023, 1, 7),
        "十二天前": datetime.combine(fetched.date() - timedelta(days=12), time.min, CHINA),
        "Mon, 21 Apr 2025 06:00:00 EDT": datetime(2025, 4, 21, 10, tzinfo=UTC),
        "1天2小时前": fetched - timedelta(days=1, hours=2),
        "2023年1月7日15时": in_china(2023, 1, 7, 15),
    }
    save(world, dict.fromkeys(later, OLD))
    world.pass_s(86400)
    done = read_dates(world)
    assert (done.dates, done.moved, done.found, done.lost) == (5, 5, 0, 0)
    assert days(world) == later
    first = done.changes[0]
    assert (first.date_text, first.before, first.after) == ("2023 Jan 7", OLD, later["2023 Jan 7"])
    assert read_dates(world).changed == 0


def test_a_day_is_found_or_lost(world):
    save(world, {"7 January 2023": None, "2023-02-30": OLD, "前所未有": None, "": OLD})
    done = read_dates(world)
    assert (done.dates, done.moved, done.found, done.lost) == (3, 0, 1, 1)
    assert days(world) == {
        "7 January 2023": in_china(2023, 1, 7), "2023-02-30": None, "前所未有": None, "": OLD
    }  # fmt: skip


@pytest.mark.parametrize("stored", [in_china(2024, 3, 6), in_china(2024, 6, 3)])
@pytest.mark.parametrize("text", ["06/03/2024", "06-03-2024"])
def test_a_day_whose_order_is_in_doubt_stays_if_its_text_can_mean_it(world, text, stored):
    save(world, {text: stored})
    assert read_dates(world).changed == 0
    assert days(world) == {text: stored}


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["06/03/2024", "25/03/2024"], in_china(2024, 3, 6)),
        (["06/03/2024", "03/25/2024"], in_china(2024, 6, 3)),
    ],
)
def test_other_dates_of_the_page_decide_on_an_order_in_doubt(world, texts, expected):
    save(world, dict.fromkeys(texts, OLD))
    assert read_dates(world).moved == 2
    assert days(world)[texts[0]] == expected


@pytest.mark.parametrize("text", ["3天前", "2 days ago", "5分钟前", "昨天 12:30", "刚刚"])
def test_a_relative_day_stays_if_its_page_was_fetched_a_little_earlier(world, text):
    """It was read before its page was stored, and on another day by the clock."""
    save(world, {text: read_date(text, world.now.astimezone(CHINA) - timedelta(minutes=20))})
    assert read_dates(world).changed == 0


def test_the_days_of_an_imported_page_stay(world):
    assert world.add_product("自带", sites=())
    own = Review(review_key("", "", "", "很好", None), "", "很好", "", "2023-01-07", OLD, None)
    one = ImportedReview("自带", "自带", "jd.com", "", own, page_of_import("jd.com", "", "自带"))
    world.do(imports.save, "shop", [one], world.look(products.ids, ["自带"]))
    done = read_dates(world)
    assert (done.pages, done.imported, done.dates, done.changed) == (1, 1, 0, 0)
    assert days(world) == {"2023-01-07": OLD}


def test_a_trial_changes_nothing(world):
    save(world, {"2023-01-07": OLD})
    tried = read_dates(world, dry_run=True)
    assert days(world) == {"2023-01-07": OLD}
    assert read_dates(world) == tried


def test_it_goes_on_where_it_was_interrupted_and_begins_again_at_the_end(world, monkeypatch):
    monkeypatch.setattr(judging, "BATCH", 1)
    for number in ("1", "2", "3"):
        save(world, {f"2023-01-0{number}": OLD}, number)

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_dates(world, stop)
    assert [day == OLD for day in days(world).values()] == [False, True, True]
    done = read_dates(world)
    assert (done.to_do, done.pages, done.changed) == (2, 2, 2)
    assert read_dates(world).pages == 3


def test_only_the_pages_of_one_product(world):
    save(world, {"2023-01-07": OLD}, "1")
    save(world, {"2023-01-08": OLD}, "2")
    ids = {row.name: row.id for row in world.rows(product_table)}
    assert read_dates(world, product_id=ids["2"]).changed == 1
    assert days(world)["2023-01-07"] == OLD


def test_a_page_that_is_stored_again_meanwhile_keeps_its_days(world):
    save(world, {"2023-01-07": OLD})
    one = Pass(mark="dates", again=True)

    def slow(page):
        found = read_again(CATALOG, page)
        world.run("UPDATE pages SET content_hash = 'another'")
        return found

    go_through(world.store, slow, one, DatesRead(), lambda _: None)
    assert days(world) == {"2023-01-07": OLD}
    assert len(world.rows(page_table)) == 1


ZONES = ("Asia/Shanghai", "UTC", "Europe/Berlin", "America/New_York", "Pacific/Auckland")


def test_a_review_is_found_by_the_day_of_the_zone_that_its_date_was_read_in(world):
    written = [
        datetime(*day, tzinfo=get_zone(zone)) + timedelta(minutes=minutes)
        for zone in ZONES
        for day in ((2024, 3, 31), (2024, 11, 3), (2025, 1, 1))  # on the first two a clock is set
        for minutes in (-1, 0, 1, 1439, 1440)
    ]
    save(world, {f"{n}": date for n, date in enumerate(written)} | {"": None})
    rows = world.look(lambda tx: list(list_reviews(tx)))
    assert [(row.published_at, row.day) for row in rows] == [
        *((date, date.date()) for date in written),
        (None, None),
    ]
    assert [row.has_clock for row in rows] == [date.time() != time.min for date in written] + [False]
    days = Counter(date.date() for date in written)
    assert len(days) == 9
    for day, n in days.items():
        of_day = ReviewFilter(day_from=day, day_to=day)
        found = world.look(lambda tx, of_day=of_day: list(list_reviews(tx, of_day)))
        assert [row.day for row in found] == [day] * n
    counted = world.look(count_reviews, ReviewFilter())
    assert {day: n for (_, day), n in counted.by_day.items()} == days
    assert (counted.total, counted.undated) == (len(written) + 1, 1)
    first = ReviewFilter(day_from=min(days))
    assert len(world.look(lambda tx: list(list_reviews(tx, first)))) == len(written)


def test_a_site_with_another_zone_gets_other_days(world):
    save(world, {"2024-03-31": in_china(2024, 3, 31), "2024-03-31 23:30 GMT": in_china(2024, 4, 1, 7, 30)})
    of_berlin = CATALOG.sites[SITE].model_copy(update={"zone": "Europe/Berlin"})
    catalog = CATALOG.model_copy(update={"sites": {**CATALOG.sites, SITE: of_berlin}})
    one = Pass(mark="dates", again=True)
    done = go_through(world.store, partial(read_again, catalog), one, DatesRead(), lambda _: None)
    assert done.moved == 2
    assert [(row.published_at, row.day) for row in world.rows(reviews)] == [
        (datetime(2024, 3, 30, 23, tzinfo=UTC), date(2024, 3, 31)),
        (datetime(2024, 3, 31, 23, 30, tzinfo=UTC), date(2024, 3, 31)),
    ]
