"""A recrawl asks known pages again after a while: what is new in them is stored, and nothing twice."""

from datetime import timedelta

import pytest
from world import SITE, World, hit, review

from tasks.domain.attempt_end import Counters
from tasks.domain.hit_count import NewPartition
from tasks.domain.page_key import page_key
from tasks.store.content import pages
from tasks.store.queue import schedules, tasks
from tasks.store.sql.tables import page_products, reviews, subtasks
from tasks.store.sql.tables import pages as page_table

REFRESH = timedelta(hours=6)
REFRESH_S = REFRESH.total_seconds()
PAGE = hit("1")


def crawl(world: World, *bodies, **page):
    """Store the page with these reviews for a first product, and close the attempt."""
    read = [review(key, body) for key, body in bodies]
    lease, _ = world.stored_page("甲", read, refresh=REFRESH, **{"etag": '"v1"', **page})
    assert world.close(lease, Counters(offered=1, tried=1, collected=1))


def crawl_again(world: World, after_s=REFRESH_S, product="甲又一轮"):
    """Return the lease and the hits of a later crawl, whose result page lists the page again."""
    world.pass_s(after_s)
    return world.found(product, [PAGE], refresh=REFRESH)


def save_again(world: World, *bodies, product="甲又一轮", content_hash="1"):
    """Store the page as a later crawl reads it."""
    lease, hits = crawl_again(world, product=product)
    read = [review(key, body) for key, body in bodies]
    assert not world.save(lease, hits.todo[0], read, content_hash=content_hash), "it is no new page"
    assert world.close(lease, Counters(known=1))


def stored(world: World):
    return [(row.key, row.body) for row in world.rows(reviews)]


def products_of_page(world: World):
    return [row.product_id for row in world.rows(page_products)]


def test_a_page_is_asked_again_on_the_second_and_not_before(world):
    crawl(world, ("a", "x"))
    early, hits = crawl_again(world, REFRESH_S - 1, "乙")
    assert (hits.todo, hits.known) == ((), {page_key(PAGE)})
    _, hits = crawl_again(world, 1, "丙")
    (target,) = hits.todo
    assert (target.url, target.etag, target.last_modified) == (PAGE, '"v1"', None)
    assert hits.known == frozenset(), "a hit is to be fetched or known, not both"
    assert world.targets(early.subtask_id)[PAGE] == "stored"


def test_the_next_round_of_a_product_asks_again(world):
    every = timedelta(days=1)
    world.add_product("特仑苏", recrawl_every=every)
    planned = [tasks.NewTask(SITE, "baidu", "meta", (NewPartition(("特仑苏",), 1, 1),))]
    for number in (1, 2):
        (wanted,) = world.look(tasks.list_unplanned, 10)
        assert world.do(tasks.plan, wanted, planned, lambda *_, n=number: [f"http://search/{n}"]) == 1
        world.admit()
        lease, work = world.begin(world.rows(subtasks)[-1].id)
        (target,) = world.read_results(lease, work.targets[0], [PAGE], refresh=REFRESH).todo
        assert world.save(lease, target, [review("a", "x")], content_hash=str(number)) is (number == 1)
        assert world.close(lease)
        world.pass_s(every.total_seconds())
        world.do(schedules.recrawl_due)
    assert len(world.rows(reviews)) == 1


def test_unchanged_by_its_own_word_it_counts_as_asked_now(world):
    crawl(world, ("a", "x"))
    lease, hits = crawl_again(world)
    world.end_target(lease, hits.todo[0], "stored", "unchanged", counts=False)
    assert world.targets(lease.subtask_id)[PAGE] == "stored"
    (page,) = world.rows(page_table)
    assert (page.checked_at, page.etag) == (world.now, '"v1"')
    assert crawl_again(world, REFRESH_S - 1, "乙")[1].todo == ()
    assert len(crawl_again(world, 1, "丙")[1].todo) == 1


def test_a_page_has_the_confidence_of_its_last_reading(world):
    crawl(world, confidence=0.25)
    lease, hits = crawl_again(world)
    assert world.rows(page_table)[0].confidence == 0.25
    assert not world.save(lease, hits.todo[0], [], confidence=0.75)
    assert world.rows(page_table)[0].confidence == 0.75


def test_unchanged_it_is_linked_to_the_product_that_asked(world):
    """Two products find a new page at the same time; one attempt is cut off and its successor is told "unchanged"."""
    (first, one), (second, other) = world.found("甲", [PAGE]), world.found("乙", [PAGE])
    assert world.save(first, one.todo[0], [review("a", "x")], etag='"v1"')
    world.end_target(second, other.todo[0], "stored", "unchanged", counts=False)
    assert products_of_page(world) == [1, 2]


def test_unchanged_is_not_believed_once_the_lease_is_over(world):
    crawl(world, ("a", "x"))
    lease, hits = crawl_again(world)
    assert world.close(lease)
    world.end_target(lease, hits.todo[0], "stored", "unchanged", counts=False)
    assert world.rows(page_table)[0].checked_at is None
    assert world.targets(lease.subtask_id)[PAGE] == "todo"


def test_reviews_with_ids_are_known_by_them(world):
    crawl(world, ("a", "x"), ("b", "y"))
    save_again(world, ("c", "z"), ("a", "x, edited"), ("b", "y"))
    assert stored(world) == [("a", "x"), ("b", "y"), ("c", "z")]
    assert world.rows(page_table)[0].reviews == 3


def test_reviews_without_ids_are_known_by_their_text_wherever_they_stand_now(world):
    crawl(world, ("#0", "x"), ("#1", "y"))
    save_again(world, ("#0", "new"), ("#1", "x"), ("#2", "y"), ("#3", "new"))
    assert [body for _, body in stored(world)] == ["x", "y", "new", "new"]
    save_again(world, ("#0", "newer"), ("#1", "new"), ("#2", "x"), product="乙", content_hash="2")
    assert [body for _, body in stored(world)] == ["x", "y", "new", "new", "newer"]
    assert world.rows(page_table)[0].reviews == 5


@pytest.mark.parametrize(
    ("before", "now", "added"),
    [
        (["小明", "李雷"], ["小红", "小明", "李雷"], ["小红"]),
        (["小明", "李雷"], ["小红", "小刚"], []),  # changed names, or a list that shows the newest
        (["小明"], ["李雷"], []),
        (["小明"], ["", "小明"], [""]),
        (["", ""], ["", "", ""], [""]),
        (["j***n", "j***n"], ["j***n"], []),
        (["小明"], ["小明", "小明"], ["小明"]),
        ([], ["小明", "", ""], ["小明", "", ""]),
    ],
)
def test_a_stock_phrase_of_a_further_buyer_is_a_further_review(world, before, now, added):
    """Records without ids on a page that is read again, each with the same text."""

    def read(authors):
        return [review("a", "别的"), *(review(f"#{n}", "好评", author) for n, author in enumerate(authors))]

    lease, _ = world.stored_page("甲", read(before), refresh=REFRESH, etag='"v1"')
    world.close(lease, Counters(offered=1, tried=1, collected=1))
    lease, hits = crawl_again(world)
    world.save(lease, hits.todo[0], read(now), content_hash="1")
    authors = [row.author for row in world.rows(reviews) if row.body == "好评"]
    assert authors == before + added
    assert world.rows(page_table)[0].reviews == 1 + len(authors)


def test_new_reviews_are_linked_to_equal_texts_there_and_elsewhere(world):
    crawl(world, ("a", "x"))
    save_again(world, ("b", "x"), ("c", "好评"), ("d", "好评"))
    key_of = {row.id: row.key for row in world.rows(reviews)}
    originals = {row.key: key_of.get(row.same_as) for row in world.rows(reviews)}
    assert originals == {"a": None, "b": "a", "c": None, "d": "c"}


def test_what_is_new_names_who_brought_it_and_the_page_who_brought_it_first(world):
    crawl(world, ("a", "x"))
    save_again(world, ("a", "x"), ("b", "y"))
    first, second = world.rows(reviews)
    assert first.attempt_id != second.attempt_id
    assert world.rows(page_table)[0].attempt_id == first.attempt_id
    (last,) = world.attempts(max(row.id for row in world.rows(subtasks)))
    assert (last.collected, last.known) == (0, 1)


def test_two_products_that_ask_again_at_once_store_what_is_new_once(world):
    crawl(world, ("a", "x"))
    asked = [crawl_again(world, product="乙"), crawl_again(world, 0, "丙")]
    read = [review("a", "x"), review("b", "y"), review("#2", "z")]
    saved = [world.page(lease, hits.todo[0], read, content_hash="1") for lease, hits in asked]
    assert world.do(pages.save_pages, saved) == [False, False]
    assert [body for _, body in stored(world)] == ["x", "y", "z"]
    assert products_of_page(world) == [1, 2, 3]


CROSSED_S = -0.006
"""Seconds from the transaction that commits first to the beginning of the one that overlaps it."""


@pytest.mark.parametrize("read", [[review("a", "x")], [review("a", "x"), review("b", "y")]])
def test_times_of_a_page_never_run_backwards(world, read):
    """Three products find a new page at the same time; the transaction with the latest time commits first."""
    (first, one), (second, two), (third, three) = (world.found(name, [PAGE]) for name in "甲乙丙")
    fourth, work = world.begin(world.waiting("丁"))
    world.pass_s(10)
    assert world.save(first, one.todo[0], [review("a", "x")])
    latest = world.now

    world.pass_s(CROSSED_S)
    assert not world.save(second, two.todo[0], read, content_hash=str(len(read)))
    world.read_results(fourth, work.targets[0], [PAGE])
    world.pass_s(CROSSED_S)
    world.end_target(third, three.todo[0], "stored", "unchanged", counts=False)

    (page,) = world.rows(page_table)
    assert (page.fetched_at, page.checked_at) == (latest, latest)
    assert [row.linked_at for row in world.rows(page_products)] == [latest] * 4
    assert [row.collected_at for row in world.rows(reviews)] == [latest] * len(read)
