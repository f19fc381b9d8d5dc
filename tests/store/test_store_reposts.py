"""Reposts are linked to their original by a sweep, once, without chains; deleted reviews leave all others whole."""

from datetime import timedelta
from itertools import count, repeat

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_store_imports import imported
from world import START, hit, review, undone

from app.actions import product_actions
from tasks.domain.verdicts import Verdict
from tasks.jobs import repost_linking
from tasks.reading.copies.near_duplicates import SHORTEST, plain
from tasks.store.content import imports, products, reposts, review_removal
from tasks.store.content.links import Link, set_verdicts
from tasks.store.queries import products as product_queries
from tasks.store.queries.reviews import list_reviews
from tasks.store.queue.result_pages import find_pages
from tasks.store.sql import tables
from tasks.store.sql.tables import review_bands, review_links, reviews
from tasks.store.sql.transaction import Transaction

FIRST = "蒙牛纯牛奶喝出活虫子，客服一直推脱，要求赔偿并公开道歉，以后再也不买了！"
FORWARD = f"太过分了//@牛奶观察：{FIRST}"
EDITED = FIRST.replace("赔偿", "退款") + "😡"
TWICE = EDITED.replace("客服一直推脱", "客服和经理都在推脱")
OTHER = "包装很好，物流也快，味道不错，孩子很喜欢喝，下次还会再来买的。"


def crawl(world, *bodies):
    """Store these reviews, one after the other, on a page each."""
    lease, hits = world.found("甲", [hit(str(n)) for n in range(len(bodies))])
    for target, body in zip(hits.todo, bodies, strict=True):
        world.save(lease, target, [review("0", body)])
    world.pass_s(reposts.SETTLED.total_seconds())


def step(world, most):
    """One step of the sweep; how many reviews it looked at."""
    found = world.look(repost_linking.find, most)
    return len(found.reviews) if found is not None and world.do(reposts.save, found) else 0


def linked(world):
    bodies = {row.id: row.body for row in world.rows(reviews)}
    return {bodies[r.review_id]: (bodies[r.original_id], r.similarity) for r in world.rows(review_links)}


def test_a_repost_is_linked_to_the_first_and_nothing_is_dropped(world):
    crawl(world, FIRST, OTHER, FORWARD, EDITED, "好评！", "好评。")
    assert step(world, 100) == 6
    found = linked(world)
    assert {body: original for body, (original, _) in found.items()} == {FORWARD: FIRST, EDITED: FIRST}
    assert found[FORWARD][1] == 1.0
    assert 0.6 < found[EDITED][1] < 1
    assert len(world.rows(reviews)) == 6


def test_links_never_chain(world):
    crawl(world, FIRST, EDITED, TWICE, OTHER, TWICE + "！！", OTHER + "~")
    step(world, 100)
    rows = world.rows(review_links)
    assert rows
    assert {row.original_id for row in rows} & {row.review_id for row in rows} == set()
    assert all(row.original_id < row.review_id for row in rows)


def test_equal_texts_are_left_to_same_as_and_shown_with_their_original(world):
    crawl(world, FIRST, EDITED, FIRST, EDITED)
    step(world, 100)
    assert [(row.review_id, row.original_id) for row in world.rows(review_links)] == [(2, 1)]
    with world.store.read() as tx:
        shown = [(row.review, row.same_as, row.near_of) for row in list_reviews(tx)]
        how_near = [row.similarity for row in list_reviews(tx)]
    assert shown == [(1, None, None), (2, None, 1), (3, 1, None), (4, 2, 1)]
    assert how_near[0] is None
    assert how_near[1] == how_near[3] > 0.6


def test_a_step_is_made_anew_if_a_review_is_deleted_meanwhile(world):
    crawl(world, FIRST, EDITED)
    found = world.look(repost_linking.find, 100)
    world.do(review_removal.delete_reviews, [1])
    world.do(Transaction.run, "UPDATE pages SET reviews = 0 WHERE id = 1")
    assert not world.do(reposts.save, found)
    assert step(world, 100) == 1
    assert {row.review_id for row in world.rows(review_bands)} == {2}


def test_reviews_of_a_clock_that_was_ahead_hold_nobody_up(world):
    crawl(world, FIRST, EDITED)
    world.now -= timedelta(days=1)
    assert step(world, 100) == 2


def test_what_may_still_be_preceded_waits_on_postgresql_only(world):
    crawl(world, FIRST, EDITED)
    world.now -= timedelta(microseconds=1)
    assert step(world, 100) == (2 if world.store.is_sqlite else 0)
    world.now += timedelta(microseconds=1)
    step(world, 100)
    assert len(world.rows(review_links)) == 1


def test_a_crowded_band_takes_no_more(world, monkeypatch):
    monkeypatch.setattr(repost_linking, "_MOST_IN_BAND", 2)
    monkeypatch.setattr(repost_linking, "bands", lambda of, writer="": [1] if of and not writer else [])
    crawl(world, FIRST, OTHER, "电池续航还可以，屏幕显示细腻，拍照也清楚，手感很好。", EDITED)
    step(world, 3)
    step(world, 3)
    assert [row.review_id for row in world.rows(review_bands)] == [1, 2]
    assert list(linked(world)) == [EDITED]


@pytest.mark.parametrize(("clock", "looked"), [(repeat(0.0), 5), (count(0.0), 4)])
def test_the_sweep_takes_steps_to_the_end_or_until_its_share_is_used(world, monkeypatch, clock, looked):
    monkeypatch.setattr(repost_linking, "COMPARED_AT_ONCE", 2)
    monkeypatch.setattr(Transaction, "now", property(lambda _tx: world.now))
    crawl(world, FIRST, OTHER, FORWARD, EDITED, OTHER + "~")
    assert repost_linking.link_reposts(world.store, world.do, lambda: next(clock), 3.0) == looked
    assert len(linked(world)) == looked - 2


@given(
    bodies=st.lists(st.sampled_from([FIRST, FORWARD, EDITED, TWICE, OTHER, "好"]), min_size=1, max_size=12),
    most=st.integers(1, 5),
)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_reposted_in_whatever_steps_the_original_comes_first(sqlite_store, bodies, most):
    with undone(sqlite_store) as tx:
        tx.run("PRAGMA defer_foreign_keys = ON")  # reviews alone: rolled back before their pages are missed
        shared = dict.fromkeys(("title", "author", "date_text", "url", "site", "node"), "")
        shared |= {"page_id": 1, "text_hash": b"", "collected_at": START, "attempt_id": 1}
        rows = [(n, str(n), body) for n, body in enumerate(bodies, 1)]
        tx.insert("reviews", ("id", "key", "body"), rows, shared=shared)
        while (found := repost_linking.find(tx, most)) is not None:
            assert reposts.save(tx, found)
        links = dict(tx.rows("SELECT review_id, original_id FROM review_links"))
        copies = dict(tx.rows("SELECT id, same_as FROM reviews WHERE same_as IS NOT NULL"))
        assert not links.keys() & copies.keys()
        assert all(links[one] < one and links[one] not in links | copies for one in links)
        assert all(copies[one] < one and copies[one] not in copies for one in copies)
        texts = [plain(body) for body in bodies]
        again = {n for n, text in enumerate(texts, 1) if len(text) >= SHORTEST and text in texts[: n - 1]}
        assert again <= links.keys() | copies.keys()
        assert tx.value("SELECT count(*) FROM reviews") == len(bodies)


# --- what was collected of a product, deleted ------------------------------------------------------------------

OURS, THEIRS = "光明高钙牛奶", "特仑苏"


def find_and_store(world, product, **texts):
    """Find pages with these names for a new product, and store a review on each new one; return what was to fetch."""
    lease, hits = world.found(product, [hit(name) for name in texts])
    for target in hits.todo:
        world.save(lease, target, [review("0", texts[target.url.rsplit("/", 1)[1]])])
    world.close(lease)
    world.judge_links(judge=False)
    return [target.url for target in hits.todo]


def link_all(world):
    world.pass_s(reposts.SETTLED.total_seconds())
    return step(world, 100)


def remove(world, *names):
    return product_actions.remove(world.store, names, "ich", delete_reviews=True)


def bodies(world, product):
    return [body for _, body in world.exported(product)]


def test_reviews_go_and_what_others_have_stays(world):
    find_and_store(world, OURS, own=FIRST, shared=OTHER)
    world.pass_s(5)
    find_and_store(world, THEIRS, shared=OTHER, copy=FIRST, like=FORWARD, also=EDITED)
    ids = world.look(products.ids, [OURS])
    world.do(imports.save, "shop", [imported("我们自己的评价", OURS)], ids)
    link_all(world)
    assert linked(world).keys() == {FORWARD, EDITED}
    [removed] = remove(world, OURS)
    assert (removed.reviews, removed.deleted) == (3, 2)
    assert bodies(world, OURS) == []
    covered = world.look(product_queries.get_coverages, lambda _engine: 100)
    assert covered[ids[OURS]].share == 0.0  # of what was found
    assert bodies(world, THEIRS) == [OTHER, FIRST, FORWARD, EDITED]
    assert linked(world).keys() == {FORWARD, EDITED}  # the copy took the place of its original
    assert [row.same_as for row in world.rows(tables.reviews)] == [None] * 4
    assert {row.title for row in world.rows(tables.pages, tables.pages.c.url == hit("own"))} == {""}
    assert world.rows(tables.audit_log)[0].detail == {"cancelled": 1, "deleted": 2, "kept": 1}
    [again] = remove(world, OURS)
    assert (again.reviews, again.deleted, again.was_looked_for) == (0, 0, False)


def test_what_was_refused_or_left_out_goes_too(world):
    find_and_store(world, OURS, own=FIRST)
    world.stored_page("别的", [review("0", FORWARD)], hit("refused"), ("别的",), judge=True)
    world.do(set_verdicts, [Link(1, 1, Verdict.WRONG_PRODUCT, "光明")])
    assert [row.refused for row in world.rows(tables.reviews)] == [None, "wrong_product"]
    assert [one.deleted for one in remove(world, OURS, "别的")] == [1, 0]
    assert world.rows(tables.reviews) == []


def test_a_product_that_is_added_again_gets_its_pages_back(world):
    find_and_store(world, OURS, own=FIRST, shared=OTHER)
    find_and_store(world, THEIRS, shared=OTHER)
    remove(world, OURS)
    assert world.add_product(OURS, keywords=("光明", "牛奶"))
    assert bodies(world, OURS) == [OTHER]
    (own,) = world.rows(tables.pages, tables.pages.c.url == hit("own"))
    (page,) = world.look(find_pages, [own.url_key]).values()
    assert not page.content_hash
    assert find_and_store(world, "光明牛奶", own=FIRST) == [hit("own")]
    assert bodies(world, "光明牛奶") == [FIRST]


def test_reposts_whose_original_is_gone_are_compared_with_each_other(world):
    find_and_store(world, OURS, own=FIRST)
    find_and_store(world, THEIRS, like=FORWARD, also=EDITED)
    link_all(world)
    remove(world, OURS)
    assert {body: original for body, (original, _) in linked(world).items()} == {EDITED: FORWARD}


def test_the_sweep_looks_at_numbers_that_are_given_again(world):
    find_and_store(world, THEIRS, like=FORWARD)
    find_and_store(world, OURS, own=FIRST)
    link_all(world)
    (number,) = world.look(products.ids, [OURS]).values()
    world.do(review_removal.remove_reviews, number)
    (last,) = world.rows(tables.reviews)
    assert world.look(reposts.mark) == last.id
    find_and_store(world, "光明牛奶", other=OTHER)
    assert link_all(world) == 1
