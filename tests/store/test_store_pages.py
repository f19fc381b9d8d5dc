"""Pages and reviews: stored once, whole or not at all, and linked to every product they serve."""

import pytest
from world import START, hit, review

from tasks.domain.attempt_end import Counters
from tasks.domain.errors import Unstorable
from tasks.domain.hit_count import Provenance
from tasks.store.sql.tables import page_products, reviews, targets, tasks
from tasks.store.sql.tables import pages as page_table


def test_a_result_page_becomes_targets_and_is_not_read_again(world):
    lease, hits = world.found("甲", [hit("1"), hit("2")])
    assert [(t.kind, t.url, t.tries) for t in hits.todo] == [("hit", hit("1"), 0), ("hit", hit("2"), 0)]
    assert sorted(world.targets(lease.subtask_id).values()) == ["stored", "todo", "todo"]
    (task,) = world.rows(tasks)
    assert (task.found, task.found_provenance, task.found_reported) == (2, Provenance.COUNTED, 2)


def test_result_pages_behind_the_last_one_do_not_exist(world):
    lease, work = world.begin(world.waiting())
    first = work.targets[0]
    (other,) = world.read_results(lease, first, [hit("1")]).todo
    world.read_results(lease, first, [], past_end=[other.id])
    assert world.targets(lease.subtask_id)[hit("1")] == "refused"


def test_page_reviews_and_target_are_stored_together(world):
    lease, hits = world.found("甲", [hit("1")])
    assert world.save(lease, hits.todo[0], [review("a", "很好"), review("b", "不好")])
    (page,) = world.rows(page_table)
    assert (page.url, page.reviews, page.node, page.late) == (hit("1"), 2, "n1", False)
    first, second = world.rows(reviews)
    assert [(r.key, r.body, r.page_id) for r in (first, second)] == [
        ("a", "很好", page.id),
        ("b", "不好", page.id),
    ]
    origin = (hit("1"), lease.site, lease.node, lease.attempt_id)
    assert (first.url, first.site, first.node, first.attempt_id) == origin
    assert (first.published_at, first.collected_at) == (START, world.now)
    (row,) = world.rows(targets, targets.c.kind == "hit")
    assert (row.state, row.tries) == ("stored", 1)


def test_a_failure_inside_leaves_nothing(world):
    lease, hits = world.found("甲", [hit("1")])
    with pytest.raises(Unstorable):
        world.save(lease, hits.todo[0], [review("a", "很好"), review("a", "一样的编号")])
    assert [world.rows(t) for t in (page_table, reviews, page_products)] == [[], [], []]
    (row,) = world.rows(targets, targets.c.kind == "hit")
    assert (row.state, row.tries) == ("todo", 0)


def test_two_products_one_page_two_links(world):
    lease, first = world.found("甲", [hit("1")])
    other, same = world.found("乙", [hit("1")])
    assert world.save(lease, first.todo[0])
    assert not world.save(other, same.todo[0]), "somebody else stored it meanwhile"
    assert len(world.rows(page_table)) == 1
    assert [row.product_id for row in world.rows(page_products)] == [1, 2]
    assert world.targets(other.subtask_id)[hit("1")] == "stored"


def test_a_known_page_adds_a_link_and_no_fetch(world):
    lease, first = world.found("甲", [hit("1")])
    world.save(lease, first.todo[0])
    _, hits = world.found("乙", [hit("1"), hit("2")])
    assert ([t.url for t in hits.todo], len(hits.known)) == ([hit("2")], 1)
    assert [row.product_id for row in world.rows(page_products)] == [1, 2]


def test_equal_texts_are_linked_to_the_first_and_never_dropped(world):
    lease, hits = world.found("甲", [hit("1"), hit("2")])
    one, two = hits.todo
    world.save(lease, one, [review("a", "质量太差"), review("b", "质量太差"), review("c", "还行")])
    world.save(lease, two, [review("a", "质量太差"), review("b", "还行"), review("c", "新的")])
    stored = world.rows(reviews)
    by_id = {row.id: row for row in stored}
    originals = {(row.url, row.key) for row in stored if row.same_as is None}
    assert len(stored) == 6
    assert originals == {(hit("1"), "a"), (hit("1"), "c"), (hit("2"), "c")}
    copies = [(row, by_id[row.same_as]) for row in stored if row.same_as is not None]
    assert all(first.same_as is None and first.body == row.body for row, first in copies)


def test_a_refused_record_is_no_original_in_its_own_batch(world):
    lease, hits = world.found("甲", [hit("1")])
    refused = [("empty", review("x", "质量太差"))]
    world.save(lease, hits.todo[0], [review("a", "质量太差"), review("b", "质量太差")], refused=refused)
    by_key = {row.key: row for row in world.rows(reviews)}
    assert by_key["b"].same_as == by_key["a"].id
    assert [by_key[key].same_as for key in "ax"] == [None, None]


def test_a_target_without_a_page(world):
    lease, hits = world.found("甲", [hit("1"), hit("2"), hit("3"), hit("4")])
    ends = [("todo", False), ("todo", True), ("refused", True), ("given_up", True)]
    for target, (state, counts) in zip(hits.todo, ends, strict=True):
        world.end_target(lease, target, state, "timeout", counts=counts)
    rows = world.rows(targets, targets.c.kind == "hit")
    assert [(r.state, r.tries) for r in rows] == [("todo", 0), ("todo", 1), ("refused", 1), ("given_up", 1)]
    assert world.close(lease, Counters(offered=4, tried=4))
