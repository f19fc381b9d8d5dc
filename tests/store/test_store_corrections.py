"""Corrections of people: they win over the models, hold for linked texts, and outlive every change of the rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from patience import PATIENCE_S
from test_store_concurrency import WAITING
from test_store_counted import DAY, LONG, SERVICE, SPOILED, judged, list_days, list_themes
from test_store_import_undo import bring_reviews, imported, undo
from world import hit

from app.actions import product_actions, review_corrections
from tasks.domain.voices import Voice, VoiceJudgement
from tasks.store.content import correcting, counted_reviews, links, reposts
from tasks.store.content.corrections import Correction, get_correction, list_linked
from tasks.store.content.links import JudgedPage, Link
from tasks.store.content.products import ProductEdit
from tasks.store.queries.product_counts import PraiseRule, count_products
from tasks.store.queries.queues import get_totals
from tasks.store.queries.reviews import ReviewFilter, list_reviews
from tasks.store.queries.themes import Period, count_review_weeks
from tasks.store.sql.tables import correction_texts, corrections, review_themes, reviews
from tasks.store.sql.transaction import Transaction

PRAISE = Correction(voice=Voice.PRAISE)


def correct(world, number, correction, because=""):
    """Correct a review and all that is linked with it."""
    world.do(correcting.save, world.look(list_linked, number), correction, "ich", because)


def rows_of(world, **wanted):
    return world.look(lambda tx: list(list_reviews(tx, ReviewFilter(**wanted))))


def check(world):
    assert world.verification().violations == ()


def test_a_voice_of_a_person_wins_over_the_model_and_says_so(world):
    world.stored_page("甲", [judged("1", LONG, themes=(SPOILED,)), judged("2", "别的")])
    correct(world, 1, Correction(voice=Voice.QUESTION), "asks only")
    assert list_days(world) == [(1, DAY, "complaint", 2), (1, DAY, "question", 1)]
    assert list_themes(world) == []
    first, second = rows_of(world)
    assert (first.voice, first.voice_probability, first.corrected, first.corrected_by) == (
        "question", None, "voice", "ich",
    )  # fmt: skip
    assert (second.voice, second.corrected, second.corrected_at) == ("complaint", "", None)
    assert first.corrected_at is not None
    stored = world.look(get_correction, 1)
    assert (stored.voice, stored.because) == (Voice.QUESTION, "asks only")
    assert [row.review for row in rows_of(world, voices=(Voice.QUESTION,))] == [1]
    assert world.look(get_totals).voices == {"complaint": 1, "question": 1}
    check(world)
    correct(world, 1, Correction())
    assert list_days(world) == [(1, DAY, "complaint", 1), (1, DAY, "complaint", 2)]
    assert world.rows(corrections) == world.rows(correction_texts) == []
    check(world)


def test_themes_of_a_person_keep_the_clauses_that_the_model_found(world):
    world.stored_page("甲", [judged("1", LONG, themes=(SPOILED, SERVICE))])
    correct(world, 1, Correction(themes=("service", "packaging")))
    found = {row.theme: (row.quote_from, row.quote_to, row.sentiment) for row in world.rows(review_themes)}
    assert found.keys() == {"service", "packaging"}
    assert found["service"] == (14, 25, -1)
    assert found["packaging"][0] == 0
    assert found["packaging"][1] >= len(LONG)
    correct(world, 1, Correction(themes=()))
    assert list_themes(world) == []
    check(world)


def test_a_hidden_review_counts_for_no_product_and_one_of_another_product_not_for_this_one(world):
    world.stored_page("甲", [judged("1", LONG, themes=(SPOILED,)), judged("2", "别的", themes=(SERVICE,))])
    world.add_product("乙")
    world.do(links.add, [Link(1, 2)])
    world.do(counted_reviews.add_pages, [1])
    correct(world, 1, Correction(not_products=(1,)))
    correct(world, 2, Correction(hidden=True))
    assert list_days(world) == [
        (1, DAY, "left_out", 1), (1, DAY, "left_out", 2), (2, DAY, "complaint", 1), (2, DAY, "left_out", 2),
    ]  # fmt: skip
    assert list_themes(world) == [(2, "spoiled", 1)]
    rule = PraiseRule(with_praise=(), without=(), least_buyers=50, least_praise=0.2)
    counted = world.look(count_products, None, Period(), None, rule)
    assert [(one.product_id, one.reviews) for one in counted] == [(2, 1)]
    (week,) = world.look(count_review_weeks, [1], Period())
    assert (week.n, week.complaints, week.left_out) == (0, 0, 2)
    told = {(row.review, row.product): (row.left_out, row.corrected) for row in rows_of(world)}
    assert told[1, "甲"] == ("not_product", "not_product")
    assert told[1, "乙"] == ("", "")
    assert told[2, "甲"] == told[2, "乙"] == ("hidden", "hidden")
    assert [(row.review, row.product) for row in rows_of(world, counted=True)] == [(1, "乙")]
    check(world)


def test_a_correction_holds_for_equal_texts_now_and_later(world):
    lease, hits = world.found("甲", [hit("1"), hit("2"), hit("3")])
    world.save(lease, hits.todo[0], [judged("1", LONG, themes=(SPOILED,))])
    world.save(lease, hits.todo[1], [judged("2", LONG, themes=(SPOILED,))])
    assert world.look(list_linked, 2) == [1, 2]
    correct(world, 2, PRAISE)
    world.save(lease, hits.todo[2], [judged("3", LONG, themes=(SPOILED,))])
    assert [row.voice for row in rows_of(world)] == ["praise"] * 3
    assert list_days(world) == [(1, DAY, "praise", 1)]
    check(world)


def test_a_text_that_is_found_to_be_nearly_equal_later_gets_the_correction(world):
    lease, hits = world.found("甲", [hit("1"), hit("2"), hit("3")])
    world.save(lease, hits.todo[0], [judged("1", LONG)])
    correct(world, 1, PRAISE)
    world.save(lease, hits.todo[1], [judged("2", LONG + "！")])
    step = reposts.Step(0, {1: None, 2: None}, [], [reposts.RepostLink(2, 1, 0.9)], [])
    assert world.do(reposts.save, step)
    assert [row.voice for row in rows_of(world)] == ["praise", "praise"]
    assert world.look(list_linked, 1) == [1, 2]
    check(world)
    correct(world, 2, Correction())
    assert [row.voice for row in rows_of(world)] == ["complaint", "complaint"]


def test_the_earlier_of_two_texts_gets_the_correction_of_the_later_one(world):
    lease, hits = world.found("甲", [hit("1"), hit("2")])
    world.save(lease, hits.todo[0], [judged("1", LONG)])
    world.save(lease, hits.todo[1], [judged("2", LONG + "！")])
    correct(world, 2, PRAISE)
    assert world.do(
        reposts.save, reposts.Step(0, {1: None, 2: None}, [], [reposts.RepostLink(2, 1, 0.9)], [])
    )
    assert list_days(world) == [(1, DAY, "praise", 1), (1, DAY, "praise", 2)]
    check(world)


@pytest.mark.parametrize(
    ("now", "voices"), [(Correction(), ["complaint"] * 2), (Correction(voice=Voice.NEWS), ["news"] * 2)]
)
def test_a_text_that_was_stored_while_its_correction_changed_gets_the_present_one(world, now, voices):
    lease, hits = world.found("甲", [hit("1"), hit("2")])
    world.save(lease, hits.todo[0], [judged("1", LONG)])
    correct(world, 1, PRAISE)
    world.save(lease, hits.todo[1], [judged("2", LONG)])
    old = world.rows(corrections)[0].id
    correct(world, 1, now)
    world.change(
        f"UPDATE reviews SET correction_id = {old} WHERE id = 2"
    )  # as on PostgreSQL, if both are open
    assert world.do(reposts.save, reposts.Step(0, {1: None, 2: 1}, [], [], []))
    assert [row.voice for row in rows_of(world)] == voices
    check(world)


def test_linked_texts_with_a_correction_each_keep_it_and_get_the_next_one_together(world):
    lease, hits = world.found("甲", [hit("1"), hit("2")])
    world.save(lease, hits.todo[0], [judged("1", LONG)])
    world.save(lease, hits.todo[1], [judged("2", LONG + "！")])
    correct(world, 1, PRAISE)
    correct(world, 2, Correction(voice=Voice.NEWS))
    assert world.do(
        reposts.save, reposts.Step(0, {1: None, 2: None}, [], [reposts.RepostLink(2, 1, 0.9)], [])
    )
    assert [row.voice for row in rows_of(world)] == ["praise", "news"]
    correct(world, 1, Correction(voice=Voice.OTHER))
    assert [row.voice for row in rows_of(world)] == ["other", "other"]
    assert len(world.rows(corrections)) == 1
    check(world)


def test_a_new_judgement_changes_nothing_that_a_person_decided(world):
    world.stored_page("甲", [judged("1", LONG, themes=(SPOILED,))])
    correct(world, 1, Correction(voice=Voice.PRAISE, themes=("packaging",)))
    (stored,) = world.look(links.list_after, 0, None, 9)
    again = JudgedPage(
        page=stored, voices=[(1, VoiceJudgement("news", 0.8, 0.9, 0.5, "n"))], themes=[(1, (SERVICE,))]
    )
    world.do(links.save, [again])
    assert list_days(world) == [(1, DAY, "praise", 1)]
    assert list_themes(world) == [(1, "packaging", 1)]
    correct(world, 1, Correction())
    assert list_days(world) == [(1, DAY, "news", 1)]
    check(world)


@pytest.mark.parametrize(("key", "body"), [("id7", "短文"), ("#3", "短文"), ("#3", LONG)])
def test_a_correction_outlives_the_rows_and_a_new_crawl_of_the_page(world, key, body):
    lease, hits = world.found("甲", [hit("1")])
    (target,) = hits.todo
    world.save(lease, target, [judged(key, body, themes=(SPOILED,))])
    correct(world, 1, PRAISE)
    world.save(lease, target, [judged("x", "前面又来一条"), judged(key, body)], content_hash="1")
    assert [row.voice for row in rows_of(world) if row.body == body] == ["praise"]
    product_actions.remove(world.store, ["甲"], "ich", delete_reviews=True)
    assert world.rows(reviews) == []
    lease, hits = world.found("乙", [hit("1")])
    world.save(lease, target, [judged("y", "前面"), judged(key.replace("3", "9"), body)], content_hash="2")
    found = {row.body: row.correction_id is not None for row in world.rows(reviews)}
    assert found == {"前面": False, body: True}
    check(world)


def test_an_edited_text_of_a_review_with_an_id_keeps_the_correction(world):
    lease, hits = world.found("甲", [hit("1")])
    world.save(lease, hits.todo[0], [judged("id7", "短文")])
    correct(world, 1, PRAISE)
    product_actions.remove(world.store, ["甲"], "ich", delete_reviews=True)
    world.save(lease, hits.todo[0], [judged("id7", "短文，改过了")], content_hash="2")
    assert [row.correction_id is not None for row in world.rows(reviews)] == [True]


def test_a_correction_outlives_an_import_that_is_undone_and_made_again(world):
    for n in range(2):
        number = bring_reviews(world, imported("好", product="甲"), imported("不好", product="乙"))
        if n == 0:
            ids = {row.body: row.id for row in world.rows(reviews)}
            correct(world, ids["好"], Correction(voice=Voice.NEWS, not_products=(1,)))
        told = {row.body: (row.voice, row.left_out) for row in rows_of(world)}
        assert told["好"] == ("news", "not_product")
        undone = undo(world, number)
        assert [one.name for one in undone.stays] == (["甲"] if n == 0 else [])
        assert world.rows(reviews) == []
    check(world)


def test_words_keep_reviews_from_counting_until_they_are_taken_back(world):
    lease, hits = world.found("甲", [hit("1"), hit("2")])
    world.save(lease, hits.todo[0], [judged("1", "这罐奶粉结块", themes=(SPOILED,)), judged("2", "别的")])
    now = product_actions.edit(world.store, "甲", ProductEdit(excluded_words=("奶粉", "CAN_")), "ich")
    assert now.excluded_words == ("CAN_", "奶粉")
    world.save(
        lease, hits.todo[1], [judged("3", "又是嬭粉"), judged("4", "a ＣＡＮ＿ of x"), judged("5", "a canx")]
    )
    assert list_days(world) == [
        (1, DAY, "complaint", 2), (1, DAY, "complaint", 5),
        (1, DAY, "left_out", 1), (1, DAY, "left_out", 3), (1, DAY, "left_out", 4),
    ]  # fmt: skip
    assert list_themes(world) == []
    assert [row.left_out for row in rows_of(world)] == [
        "excluded_word",
        "",
        "excluded_word",
        "excluded_word",
        "",
    ]
    check(world)
    product_actions.edit(world.store, "甲", ProductEdit(excluded_words=()), "ich")
    assert {voice for _, _, voice, _ in list_days(world)} == {"complaint"}
    assert list_themes(world) == [(1, "spoiled", 1)]
    check(world)


def test_the_next_of_equal_texts_counts_if_the_title_of_the_first_has_an_excluded_word(world):
    lease, hits = world.found("甲", [hit("1"), hit("2")])
    world.save(lease, hits.todo[0], [judged("1", LONG)._replace(title="奶粉")])
    world.save(lease, hits.todo[1], [judged("2", LONG)._replace(title="牛奶")])
    product_actions.edit(world.store, "甲", ProductEdit(excluded_words=("奶粉",)), "ich")
    assert list_days(world) == [(1, DAY, "complaint", 2), (1, DAY, "left_out", 1)]
    check(world)


def test_a_correction_waits_for_the_one_before_and_replaces_it(postgres_world):
    world = postgres_world
    world.stored_page("甲", [judged("1", LONG)])
    with ThreadPoolExecutor(1) as pool:
        with world.store.begin() as first:
            correcting.wait_turn(first)
            correcting.save(first, [1], PRAISE, "one", "")
            given = (world.store, 1, Correction(hidden=True), "two")
            second = pool.submit(review_corrections.correct, *given, copies=0)
            while not (second.done() or world.look(Transaction.value, WAITING)):
                pass
        second.result(PATIENCE_S)
    assert [(row.who, row.voice, row.hidden) for row in world.rows(corrections)] == [("two", None, True)]
    assert [row.correction_id for row in world.rows(correction_texts)] == [world.rows(corrections)[0].id]
    check(world)
