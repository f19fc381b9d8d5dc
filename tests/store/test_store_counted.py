"""Reviews as they are counted: the rows follow every change, equal texts count once, older reviews are filled in."""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import partial

import pytest
from test_store_imports import imported
from world import hit, review

from app.actions import product_actions
from tasks.domain.themes import Theme
from tasks.domain.verdicts import Verdict
from tasks.domain.voices import VoiceJudgement
from tasks.store.content import counted_reviews, imports, links, reposts, review_removal
from tasks.store.content.counted_reviews import NO_DAY
from tasks.store.content.links import JudgedPage, Link
from tasks.store.queries.queues import get_totals
from tasks.store.queries.themes import Period, count_unread, number_of_day
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
