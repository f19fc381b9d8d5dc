"""Pages and reviews: stored once, whole or not at all, and linked to every product they serve."""

from __future__ import annotations

import pytest
from world import World, hit, review

from tasks.domain.attempt_end import Counters
from tasks.domain.errors import Unstorable
from tasks.domain.hit_count import Provenance
from tasks.store.content.pages import TargetEnd
from tasks.store.queue.leases import Lease, WorkTarget
from tasks.store.sql.tables import page_products, reviews, targets, tasks
from tasks.store.sql.tables import pages as page_table


def _with_hits(world: World, product: str, urls: list[str]) -> tuple[Lease, tuple[WorkTarget, ...]]:
    lease, work = world.begin(world.waiting(product))
    return lease, world.read_results(lease, work.targets[0], urls).todo


def test_a_result_page_becomes_targets_and_is_not_read_again(world: World) -> None:
    lease, todo = _with_hits(world, "甲", [hit("1"), hit("2")])
    assert [(t.kind, t.url, t.tries) for t in todo] == [("hit", hit("1"), 0), ("hit", hit("2"), 0)]
    states = world.targets(lease.subtask_id)
    assert sorted(states.values()) == ["stored", "todo", "todo"]
    (task,) = world.rows(tasks)
    assert (task.found, task.found_provenance) == (2, Provenance.COUNTED)
    assert task.found_reported == 2


def test_result_pages_behind_the_last_one_do_not_exist(world: World) -> None:
    lease, work = world.begin(world.waiting())
    first = work.targets[0]
    (other,) = world.read_results(lease, first, [hit("1")]).todo
    world.read_results(lease, first, [], past_end=[other.id])
    assert world.targets(lease.subtask_id)[hit("1")] == "refused"


def test_page_reviews_and_target_are_stored_together(world: World) -> None:
    lease, (target,) = _with_hits(world, "甲", [hit("1")])
    assert world.save(lease, target, [review("a", "很好"), review("b", "不好")])
    (page,) = world.rows(page_table)
    assert (page.url, page.reviews, page.node, page.late) == (hit("1"), 2, "n1", False)
    assert [(r.key, r.body, r.page_id) for r in world.rows(reviews)] == [
        ("a", "很好", page.id),
        ("b", "不好", page.id),
    ]
    (row,) = world.rows(targets, targets.c.kind == "hit")
    assert (row.state, row.tries) == ("stored", 1)


def test_a_failure_inside_leaves_nothing(world: World) -> None:
    lease, (target,) = _with_hits(world, "甲", [hit("1")])
    with pytest.raises(Unstorable):
        world.save(lease, target, [review("a", "很好"), review("a", "一样的编号")])
    assert [world.rows(t) for t in (page_table, reviews, page_products)] == [[], [], []]
    (row,) = world.rows(targets, targets.c.kind == "hit")
    assert (row.state, row.tries) == ("todo", 0)


def test_two_products_one_page_two_links(world: World) -> None:
    lease, (target,) = _with_hits(world, "甲", [hit("1")])
    other, (same,) = _with_hits(world, "乙", [hit("1")])
    assert world.save(lease, target)
    assert not world.save(other, same), "somebody else stored it meanwhile"
    assert len(world.rows(page_table)) == 1
    assert [row.product_id for row in world.rows(page_products)] == [1, 2]
    assert world.targets(other.subtask_id)[hit("1")] == "stored"


def test_a_known_page_adds_a_link_and_no_fetch(world: World) -> None:
    lease, (target,) = _with_hits(world, "甲", [hit("1")])
    world.save(lease, target)
    other, work = world.begin(world.waiting("乙"))
    hits = world.read_results(other, work.targets[0], [hit("1"), hit("2")])
    assert ([t.url for t in hits.todo], len(hits.known)) == ([hit("2")], 1)
    assert [row.product_id for row in world.rows(page_products)] == [1, 2]


def test_equal_texts_are_linked_to_the_first_and_never_dropped(world: World) -> None:
    lease, (one, two) = _with_hits(world, "甲", [hit("1"), hit("2")])
    world.save(lease, one, [review("a", "质量太差"), review("b", "质量太差"), review("c", "还行")])
    world.save(lease, two, [review("a", "质量太差"), review("b", "还行"), review("c", "新的")])
    stored = world.rows(reviews)
    by_id = {row.id: row for row in stored}
    linked = [(row.url, row.key, by_id[row.same_as].body if row.same_as else None) for row in stored]
    assert len(stored) == 6
    assert sorted((url, key) for url, key, to in linked if to is None) == [
        (hit("1"), "a"),
        (hit("1"), "c"),
        (hit("2"), "c"),
    ]
    assert all(row.same_as is None or by_id[row.same_as].same_as is None for row in stored)
    assert all(row.same_as is None or by_id[row.same_as].body == row.body for row in stored)


def test_a_target_without_a_page(world: World) -> None:
    lease, todo = _with_hits(world, "甲", [hit("1"), hit("2"), hit("3"), hit("4")])
    ends = [("todo", False), ("todo", True), ("refused", True), ("given_up", True)]
    for target, (state, counts) in zip(todo, ends, strict=True):
        end = TargetEnd(target.id, state, "timeout", counts)
        world.end_target(lease, end)
    rows = world.rows(targets, targets.c.kind == "hit")
    assert [(r.state, r.tries) for r in rows] == [("todo", 0), ("todo", 1), ("refused", 1), ("given_up", 1)]
    assert world.close(lease, Counters(offered=4, tried=4))
