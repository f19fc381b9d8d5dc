"""Pages and reviews: stored once, whole or not at all, and linked to every product they serve."""

from datetime import timedelta

import pytest
from world import SITE, START, hit, review

from tasks.domain.attempt_end import Counters
from tasks.domain.errors import Unstorable
from tasks.domain.hit_count import Provenance
from tasks.domain.page_key import page_key
from tasks.store.content.pages import page_count, page_keys, save_result_pages
from tasks.store.queue import upkeep
from tasks.store.sql.tables import page_products, result_pages, reviews, targets, tasks
from tasks.store.sql.tables import pages as page_table


def hit_targets(world):
    """State and tries of each hit."""
    return [(row.state, row.tries) for row in world.rows(targets, targets.c.kind == "hit")]


def test_a_result_page_becomes_targets_and_is_not_read_again(world):
    lease, hits = world.found("甲", [hit("1"), hit("2")])
    assert [(t.kind, t.url, t.tries) for t in hits.todo] == [("hit", hit("1"), 0), ("hit", hit("2"), 0)]
    assert sorted(world.targets(lease.subtask_id).values()) == ["stored", "todo", "todo"]
    (task,) = world.rows(tasks)
    assert (task.found, task.found_provenance, task.found_reported) == (2, Provenance.COUNTED, 2)


def test_result_pages_behind_the_last_one_do_not_exist(world):
    lease, work = world.begin(world.waiting())
    (other,) = world.read_results(lease, work.targets[0], [hit("1")]).todo
    world.read_results(lease, work.targets[0], [], past_end=[other.id])
    assert world.targets(lease.subtask_id)[hit("1")] == "refused"


def test_page_reviews_and_target_are_stored_together(world):
    lease, _ = world.stored_page("甲", [review("a", "很好"), review("b", "不好")])
    (page,) = world.rows(page_table)
    assert (page.url, page.reviews, page.node, page.late) == (hit("1"), 2, "n1", False)
    first, second = world.rows(reviews)
    assert [(r.key, r.body) for r in (first, second)] == [("a", "很好"), ("b", "不好")]
    assert first.page_id == second.page_id == page.id
    origin = (hit("1"), lease.site, lease.node, lease.attempt_id)
    assert (first.url, first.site, first.node, first.attempt_id) == origin
    assert (first.published_at, first.collected_at) == (START, world.now)
    assert hit_targets(world) == [("stored", 1)]


def test_what_no_database_has_is_replaced(world):
    read = review("a", "a\0b\ud83dc")._replace(rating=float("inf"))
    world.stored_page("甲", [read])
    (row,) = world.rows(reviews)
    assert (row.body, row.rating) == ("a\ufffdb\ufffdc", None)


def test_a_failure_inside_leaves_nothing(world):
    with pytest.raises(Unstorable):
        world.stored_page("甲", [review("a", "很好"), review("a", "一样的编号")])
    assert [world.rows(t) for t in (page_table, reviews, page_products)] == [[], [], []]
    assert hit_targets(world) == [("todo", 0)]


def test_equal_texts_are_linked_to_the_first_and_never_dropped(world):
    lease, hits = world.found("甲", [hit("1"), hit("2")])
    one, two = hits.todo
    refused = [("empty", review("x", "质量太差"))]
    first = [review("a", "质量太差"), review("b", "质量太差"), review("c", "还行")]
    world.save(lease, one, first, refused=refused)
    world.save(lease, two, [review("d", "质量太差"), review("e", "还行"), review("f", "新的")])
    key_of = {row.id: row.key for row in world.rows(reviews)}
    originals = {row.key: key_of.get(row.same_as) for row in world.rows(reviews)}
    assert originals == {"a": None, "b": "a", "c": None, "x": None, "d": "a", "e": "c", "f": None}


def test_a_target_without_a_page(world):
    lease, hits = world.found("甲", [hit("1"), hit("2"), hit("3"), hit("4")])
    ends = [("todo", False), ("todo", True), ("refused", True), ("given_up", True)]
    for target, (state, counts) in zip(hits.todo, ends, strict=True):
        world.end_target(lease, target, state, "timeout", counts=counts)
    assert hit_targets(world) == [("todo", 0), ("todo", 1), ("refused", 1), ("given_up", 1)]
    assert world.close(lease, Counters(offered=4, tried=4))


# --- keys of stored pages, and the log of result pages --------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 2, 5, 100])
def test_keys_of_pages_come_once_in_batches_of_any_size(world, batch):
    assert (page_count(world.store), list(page_keys(world.store))) == (0, [])
    world.crawled(names="12345")
    found = list(page_keys(world.store, batch))
    assert sorted(key for some in found for key in some) == sorted(page_key(hit(name)) for name in "12345")
    assert all(len(some) <= batch for some in found)
    assert page_count(world.store) == 5


def test_a_result_page_is_logged_once_with_its_hits_known_ones_too(world):
    lease = world.crawled("甲", "12", saved=1)
    world.pass_s(5)
    again, more = world.begin(world.waiting("乙"), "n2")
    urls = [hit("1"), hit("2"), hit("3")]
    read = world.result_page(again, more.targets[0], urls)
    for _ in range(2):  # a COMMIT whose answer was lost is done twice
        world.do(save_result_pages, [read])
    first, second = world.rows(result_pages)
    assert (first.site, first.engine, first.node, first.at) == (SITE, "baidu", "n1", START)
    assert (second.node, second.at) == ("n2", START + timedelta(seconds=5))
    for row, its in ((first, lease), (second, again)):
        subtask = world.subtask(its.subtask_id)
        assert (row.product_id, row.part_id) == (subtask.product_id, subtask.part_id)
    assert second.hits == b"".join(page_key(url)[:8] for url in urls)


def test_old_result_pages_go_with_the_log(world):
    world.found("甲", [hit("1")])
    world.pass_s(100)
    world.found("乙", [hit("2")])
    world.do(upkeep.drop_batch, upkeep.RESULT_PAGES, timedelta(days=1))
    assert len(world.rows(result_pages)) == 2
    assert upkeep.drop_old(world.do, timedelta(seconds=50))
    assert [row.at for row in world.rows(result_pages)] == [world.now]
