"""Reviews as they are counted: the rows follow every change, equal texts count once, older reviews are filled in."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial

import pytest
from test_store_imports import imported
from world import SITE, START, hit, review, statements

from app.actions import product_actions
from app.actions.product_actions import BulkEdit
from splitter.errors import InputError
from tasks.domain.themes import Theme
from tasks.domain.verdicts import Verdict
from tasks.domain.voices import VoiceJudgement
from tasks.store.content import counted_reviews, imports, links, products, reposts, review_removal
from tasks.store.content.counted_reviews import NO_DAY
from tasks.store.content.links import JudgedPage, Link
from tasks.store.content.products import ProductEdit
from tasks.store.queries.queues import get_totals
from tasks.store.queries.review_counts import count_reviews, search_reviews
from tasks.store.queries.reviews import ReviewFilter, list_reviews
from tasks.store.queries.themes import Period, count_delays, count_review_weeks, count_unread, number_of_day
from tasks.store.queue.upkeep import store_value
from tasks.store.sql.tables import review_days, review_themes, reviews

LONG = "第一口就发现牛奶里有结块，打电话给客服也没有人理会，要求退款并且赔偿损失"
SPOILED = Theme("spoiled", -1, 3, 13)
SERVICE = Theme("service", -1, 14, 25)
DAY = number_of_day(date(2026, 1, 1))


def judged(key, body, voice="complaint", themes=(), day=datetime(2026, 1, 1, tzinfo=UTC)):
    """Return a review with a voice, themes and a day."""
    one = review(key, body)
    return one._replace(voice=VoiceJudgement(voice, 0.9, 0.9, -0.5, "m"), themes=themes, date=day)


def list_days(world):
    """Return product, day, voice and review of each row."""
    return [(row.product_id, row.day, row.voice, row.review_id) for row in world.rows(review_days)]


def list_themes(world):
    return [(row.product_id, row.theme, row.review_id) for row in world.rows(review_themes)]


def test_a_page_is_counted_by_product_day_and_theme(world):
    world.stored_page(
        "甲",
        [
            judged("1", LONG, themes=(SPOILED, SERVICE)),
            judged("2", "很好", "praise", day=None),
            judged("3", "怎么退款", "question", themes=(SERVICE,)),
            review("4", "没有判断"),
        ],
    )
    assert list_days(world) == [
        (1, NO_DAY, "praise", 2),
        (1, DAY, "", 4),
        (1, DAY, "complaint", 1),
        (1, DAY, "question", 3),
    ]
    assert list_themes(world) == [(1, "service", 1), (1, "spoiled", 1)]
    (row,) = world.rows(review_themes, review_themes.c.theme == "spoiled")
    assert (row.quote_from, row.quote_to, row.sentiment) == (3, 13, -1)


def test_reviews_that_were_not_read_for_themes_are_counted(world):
    world.stored_page(
        "甲",
        [
            judged("1", "broke after two days", themes=None),
            judged("2", "the lid leaks, and no one answers", themes=None, day=None),
            judged("3", LONG, themes=(SPOILED,)),
            judged("4", "很好", "praise"),
            review("5", "没有判断"),
        ],
    )
    assert world.look(count_unread, [1, 2], Period()) == [(1, 2)]
    assert world.look(count_unread, [1], Period(since=date(2026, 1, 1))) == [(1, 1)]
    (page,) = world.look(links.list_after, 0, None, 9)
    assert [one.review.themes for one in page.records] == [None, None, (SPOILED,), (), ()]


@pytest.mark.parametrize("day", [date(1970, 1, 1), date(1999, 12, 31), date(2024, 2, 29), date(2100, 12, 31)])
def test_days_are_numbered_alike_in_both_databases(world, day):
    when = datetime(day.year, day.month, day.day, tzinfo=UTC)
    world.stored_page("甲", [judged("1", LONG, day=when)])
    assert [row[1] for row in list_days(world)] == [number_of_day(day)]


def test_equal_texts_count_once_for_each_product(world):
    world.stored_page("甲", [judged("1", LONG, themes=(SPOILED,)), judged("2", LONG, themes=(SPOILED,))])
    lease, hits = world.found("乙", [hit("another")])
    world.save(
        lease, hits.todo[0], [judged("1", LONG, themes=(SPOILED,)), judged("2", LONG, themes=(SPOILED,))]
    )
    assert [row.same_as for row in world.rows(reviews)] == [None, 1, 1, 1]
    assert [(product, number) for product, _, _, number in list_days(world)] == [(1, 1), (2, 3)]
    assert list_themes(world) == [(1, "spoiled", 1), (2, "spoiled", 3)]


def test_another_of_equal_texts_counts_while_the_first_is_no_review_of_the_product(world):
    lease, hits = world.found("甲", [hit("1"), hit("2")])
    for target in hits.todo:
        world.save(lease, target, [judged("1", LONG, themes=(SPOILED,))])
    (page,) = {row.page_id for row in world.rows(reviews, reviews.c.id == 1)}
    for verdict, counted in ((Verdict.WRONG_PRODUCT, 2), (Verdict.REVIEW, 1)):
        stored = world.look(links.list_after, page - 1, None, 1)
        link = Link(page, 1, verdict, "牛奶" if verdict is Verdict.WRONG_PRODUCT else "")
        world.do(links.save, [JudgedPage(page=stored[0], links=[link])])
        assert [number for *_, number in list_days(world)] == [counted]
        assert list_themes(world) == [(1, "spoiled", counted)]


def test_a_new_judgement_moves_the_rows(world):
    world.stored_page("甲", [judged("1", LONG, themes=(SPOILED,))])
    (stored,) = world.look(links.list_after, 0, None, 9)
    world.do(
        links.save,
        [
            JudgedPage(
                page=stored,
                voices=[(1, VoiceJudgement("praise", 0.8, 0.9, 0.5, "n"))],
                themes=[(1, (SERVICE,))],
                days=[(1, datetime(2025, 6, 1, tzinfo=UTC))],
            )
        ],
    )
    assert list_days(world) == [(1, number_of_day(date(2025, 6, 1)), "praise", 1)]
    assert list_themes(world) == [(1, "service", 1)]


def test_a_removed_product_has_no_rows(world):
    world.stored_page("甲", [judged("1", LONG, themes=(SPOILED,))])
    lease, hits = world.found("乙", [hit("x")])
    world.save(lease, hits.todo[0], [judged("1", "别的")])
    product_actions.remove(world.store, ["甲"], "ich", delete_reviews=True)
    assert [row[0] for row in list_days(world)] == [2]
    assert list_themes(world) == []


def test_an_import_is_counted_and_its_undo_is_not(world):
    world.stored_page("甲", [judged("1", LONG)])
    product_ids = {"甲": 1}
    first = world.do(imports.save, "shop", [imported(LONG, "甲"), imported("另一个", "甲")], product_ids)
    assert first == [False, False]
    assert len(list_days(world)) == len([row for row in world.rows(reviews) if row.same_as is None])
    world.do(
        review_removal.delete_reviews, [row.id for row in world.rows(reviews, reviews.c.attempt_id.is_(None))]
    )
    world.do(lambda tx: [tx.run(statement) for statement in _WITHOUT_IMPORTED])
    assert [number for *_, number in list_days(world)] == [1]


_WITHOUT_IMPORTED = (
    "DELETE FROM page_products WHERE page_id IN (SELECT id FROM pages WHERE source IS NOT NULL)",
    "DELETE FROM pages WHERE source IS NOT NULL",
)


def test_older_reviews_are_counted_step_by_step_after_an_upgrade(world):
    lease, hits = world.found("甲", [hit(str(n)) for n in range(4)])
    for number, target in enumerate(hits.todo):
        body = f"{LONG}{number}"
        world.save(lease, target, [judged("1", body, themes=(SPOILED,)), judged("2", LONG)])
    before = list_days(world), list_themes(world)
    for table in ("review_days", "review_themes"):
        world.do(lambda tx, table=table: tx.run(f"DELETE FROM {table}"))
    world.do(lambda tx: store_value(tx, "counted_reviews", tx.now, {"after": 0, "upto": 8}))
    assert world.verification().violations == ()
    assert world.look(get_totals).counted == 0
    shares = []
    while world.do(partial(counted_reviews.fill, most=3)):
        assert world.verification().violations == ()
        shares.append(world.look(get_totals).counted)
    assert shares == [3 / 8, 6 / 8, 1]
    assert world.look(get_totals).counted == 1
    assert (list_days(world), list_themes(world)) == before


def test_missing_and_foreign_rows_are_violations(world):
    world.stored_page("甲", [judged("1", "好评", "praise", themes=(SPOILED,))])
    world.do(lambda tx: tx.run("UPDATE review_days SET day = day + 1"))
    world.do(lambda tx: tx.run("UPDATE review_themes SET quote_to = quote_to + 1"))
    # Missing rows of texts that may be copies are no violation before the sweep for reposts has compared them.
    assert [one.kind for one in world.verification().violations] == ["counted"] * 2
    world.do(reposts.set_mark, "reposts", 1)
    assert [one.kind for one in world.verification().violations] == ["counted"] * 4
    world.do(lambda tx: tx.run("UPDATE review_days SET day = day - 1"))
    world.do(lambda tx: tx.run("UPDATE review_themes SET quote_to = quote_to - 1"))


# --- products that are counted as another one -----------------------------------------------------------------


SIZES = ("奶", "奶250ml", "奶1L")


def count_as(world, name, other):
    return product_actions.edit(world.store, name, ProductEdit(counted_as=other), "ich")


def list_counted_as(world):
    return [world.look(products.find, name).counted_as for name in SIZES]


def check(world):
    world.do(reposts.set_mark, "reposts", max((row.id for row in world.rows(reviews)), default=0))
    assert world.verification().violations == ()


@pytest.mark.parametrize("at_once", [1, 2, 7, 100])
def test_the_database_answers_to_a_part_of_a_large_recount_at_once(world, monkeypatch, at_once):
    monkeypatch.setattr(counted_reviews, "_AT_ONCE", at_once)
    world.stored_page("甲", [judged(str(n), f"第{n}条{LONG}", themes=(SPOILED,)) for n in range(7)])
    before = list_days(world)
    with statements(world.store, by_round_trip=True) as sent:
        product_actions.edit(world.store, "甲", ProductEdit(excluded_words=("没有的词",)), "ich")
    parts = [text.count("INSERT INTO review_days") for text in sent]
    assert sum(parts) == -(-7 // at_once)
    assert max(parts) == 1
    assert list_days(world) == before
    check(world)


@pytest.fixture
def sizes(world):
    """Three products, each with a page of a text that all have and one of its own, and a second page to store."""
    world.more = {}
    for product, own in zip(SIZES, "一二三", strict=True):
        lease, hits = world.found(product, [hit(f"{product}{n}") for n in range(2)])
        world.save(lease, hits.todo[0], [judged("1", LONG, themes=(SPOILED,)), judged("2", own, "praise")])
        world.more[product] = lease, hits.todo[1]
    return world


def test_equal_texts_of_products_that_are_counted_as_one_count_once(sizes):
    world = sizes
    before = list_days(world), list_themes(world)
    now = count_as(world, "奶250ml", "奶")
    assert (now.counted_as, now.begins_again, now.cancelled) == ("奶", False, 0)
    assert list_days(world) == [
        (1, DAY, "complaint", 1), (1, DAY, "praise", 2), (1, DAY, "praise", 4),
        (3, DAY, "complaint", 5), (3, DAY, "praise", 6),
    ]  # fmt: skip
    assert list_themes(world) == [(1, "spoiled", 1), (3, "spoiled", 5)]
    check(world)
    world.do(lambda tx: tx.run("UPDATE products SET counted_as = 3 WHERE id = 2"))
    assert {one.kind for one in world.verification().violations} == {"counted"}
    world.do(lambda tx: tx.run("UPDATE products SET counted_as = 1 WHERE id = 2"))
    assert count_as(world, "奶250ml", "").counted_as is None
    assert (list_days(world), list_themes(world)) == before
    check(world)


@pytest.mark.parametrize(
    ("steps", "counted_as", "days"),
    [
        ([("奶250ml", "奶"), ("奶1L", "奶250ml")], [None, "奶", "奶"], {1: 4}),
        ([("奶250ml", "奶"), ("奶", "奶1L")], ["奶1L", "奶1L", None], {3: 4}),
        ([("奶250ml", "奶"), ("奶1L", "奶"), ("奶250ml", "奶250ml")], [None, None, "奶"], {1: 3, 2: 2}),
        ([("奶250ml", "奶"), ("奶250ml", "奶1L")], [None, "奶1L", None], {1: 2, 3: 3}),
        ([("奶250ml", "奶"), ("奶1L", "奶"), ("奶", "")], [None, "奶", "奶"], {1: 4}),
        ([("奶", "奶")], [None, None, None], {1: 2, 2: 2, 3: 2}),
    ],
)
def test_no_product_is_counted_as_one_that_is_itself_counted_as_another(sizes, steps, counted_as, days):
    for name, other in steps:
        count_as(sizes, name, other)
    assert list_counted_as(sizes) == counted_as
    assert Counter(product for product, *_ in list_days(sizes)) == days
    check(sizes)


def test_two_products_are_not_counted_as_each_other_and_none_as_an_unknown_one(sizes):
    count_as(sizes, "奶250ml", "奶")
    for other, told in (("奶250ml", "counted as this product itself"), ("奶100ml", "there is no product")):
        with pytest.raises(InputError, match=told):
            count_as(sizes, "奶", other)
    assert list_counted_as(sizes) == [None, "奶", None]
    check(sizes)


@pytest.mark.parametrize("dry_run", [True, False])
def test_of_many_products_one_that_refuses_a_change_keeps_all_its_values(sizes, dry_run):
    count_as(sizes, "奶250ml", "奶")
    change = ProductEdit(counted_as="奶250ml", priority=7, excluded_words=("漏",))
    before = sizes.look(products.find, "奶")
    done = product_actions.edit_each(sizes.store, SIZES, BulkEdit(change=change), "ich", dry_run=dry_run)
    assert [one.name for one in done.refused] == ["奶"]
    assert [(one.name, one.counted_as, one.priority) for one in done.changed] == [
        ("奶250ml", None, 7),
        ("奶1L", "奶250ml", 7),
    ]
    after = [sizes.look(products.find, name) for name in SIZES]
    assert after[0] == replace(before, counted_with=after[0].counted_with)
    assert [one.priority for one in after] == [0, *([0, 0] if dry_run else [7, 7])]
    check(sizes)


def test_a_product_that_is_counted_as_another_keeps_its_own_pages_words_and_corrections(sizes):
    world = sizes
    count_as(world, "奶250ml", "奶")
    world.save(*world.more["奶250ml"], [judged("3", "又是结块", themes=(SPOILED,)), judged("4", LONG)])
    assert [number for product, *_, number in list_days(world) if product == 1] == [1, 7, 2, 4]
    product_actions.edit(world.store, "奶", ProductEdit(excluded_words=("结块",)), "ich")
    assert [row[2:] for row in list_days(world) if row[0] == 1] == [
        ("complaint", 3), ("complaint", 7), ("left_out", 1), ("praise", 2), ("praise", 4),
    ]  # fmt: skip
    check(world)
    product_actions.edit(world.store, "奶250ml", ProductEdit(excluded_words=("又是",)), "ich")
    stored = world.look(links.list_after, 0, 1, 9)
    world.do(links.save, [JudgedPage(page=stored[0], links=[Link(1, 1, Verdict.WRONG_PRODUCT, "奶")])])
    assert [row[2:] for row in list_days(world) if row[0] == 1] == [
        ("complaint", 3), ("left_out", 7), ("praise", 4),
    ]  # fmt: skip
    assert [row for row in list_themes(world) if row[0] == 1] == [(1, "spoiled", 3)]
    check(world)


def test_searches_exports_and_counts_of_a_product_include_those_that_are_counted_as_it(sizes):
    world = sizes
    world.do(links.add, [Link(1, 2)])  # the first page is about two of them
    world.do(counted_reviews.add_pages, [1])
    count_as(world, "奶250ml", "奶")
    for number, listed in ((1, [4, 2, 1]), (2, [4, 2, 1]), (3, [6, 5])):
        wanted = ReviewFilter(product=number)
        assert [row.review for row in world.look(partial(search_reviews, most=9), wanted).rows] == listed
        assert world.look(count_reviews, wanted).total == len(listed)
    rows = world.look(lambda tx: list(list_reviews(tx, ReviewFilter(products=("奶",)))))
    assert [(row.review, row.product, row.counted_as) for row in rows] == [
        (1, "奶", "奶"), (1, "奶250ml", "奶"), (2, "奶", "奶"), (2, "奶250ml", "奶"),
        (3, "奶250ml", "奶"), (4, "奶250ml", "奶"),
    ]  # fmt: skip
    check(world)


@pytest.mark.parametrize(
    ("main", "size", "voices"),
    [
        (("结块",), (), {"complaint": 1}),
        ((), ("结块",), {"complaint": 1}),
        (("结块",), ("结块",), {"left_out": 1}),
        ((), (), {"complaint": 1}),
    ],
)
def test_a_review_counts_if_it_counts_for_one_of_the_products_that_are_one(world, main, size, voices):
    world.stored_page("奶", [judged("1", LONG, themes=(SPOILED,))])
    world.add_product("奶1L")
    world.do(links.add, [Link(1, 2)])
    world.do(counted_reviews.add_pages, [1])
    count_as(world, "奶1L", "奶")
    for name, words in (("奶", main), ("奶1L", size)):
        product_actions.edit(world.store, name, ProductEdit(excluded_words=words), "ich")
    assert Counter(voice for _, _, voice, _ in list_days(world)) == voices
    (week,) = world.look(count_review_weeks, [1], Period())
    assert (week.complaints, week.left_out) == (voices.get("complaint", 0), voices.get("left_out", 0))
    check(world)
    count_as(world, "奶1L", "")
    assert len(list_days(world)) == 2
    check(world)


def test_reviews_of_a_product_that_came_later_are_not_seen_late(world):
    """Only reviews that were written after the last of the products came to the site tell how late others are seen."""
    for name, days in (("奶", 0), ("奶1L", 10)):
        world.now = START + timedelta(days=days)
        lease, hits = world.found(name, [hit(f"{name}{n}") for n in range(2)])
        world.save(lease, hits.todo[0])
        world.more = lease, hits.todo[1]
    world.now = START + timedelta(days=14)
    written = [judged(str(day), f"{LONG}{day}", day=START + timedelta(days=day)) for day in (5, 12)]
    world.save(*world.more, written)
    count_as(world, "奶1L", "奶")
    first = number_of_day(START.date())
    assert world.look(count_delays, [1, 2], first, timedelta()) == [(1, SITE, first + 12, 2, 1)]


def test_without_the_other_product_each_is_counted_on_its_own_again(sizes):
    for name in SIZES[1:]:
        count_as(sizes, name, "奶")
    assert sizes.look(products.find, "奶").counted_with == SIZES[1:]
    product_actions.remove(sizes.store, ["奶"], "ich", delete_reviews=True)
    assert list_counted_as(sizes) == [None, None, None]
    assert [(product, number) for product, *_, number in list_days(sizes)] == [(2, 3), (2, 4), (3, 5), (3, 6)]
    check(sizes)
