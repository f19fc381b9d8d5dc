"""Keys of stored pages come once, in batches of any size; a result page that was read is logged with its hits."""

from datetime import timedelta

import pytest
from world import SITE, START, hit

from tasks.domain.page_key import page_key
from tasks.store.content.pages import page_count, page_keys, save_result_pages
from tasks.store.queue import upkeep
from tasks.store.sql.tables import result_pages


def test_an_empty_store_has_no_keys(world):
    assert (page_count(world.store), list(page_keys(world.store))) == (0, [])


@pytest.mark.parametrize("batch", [1, 2, 5, 100])
def test_all_keys_in_batches(world, batch):
    lease, work = world.begin(world.waiting("甲"))
    names = [str(n) for n in range(5)]
    for target in world.read_results(lease, work.targets[0], [hit(name) for name in names]).todo:
        world.save(lease, target)
    found = list(page_keys(world.store, batch))
    assert sorted(key for some in found for key in some) == sorted(page_key(hit(name)) for name in names)
    assert all(len(some) <= batch for some in found)
    assert page_count(world.store) == 5


def test_a_result_page_is_logged_once_with_its_hits_known_ones_too(world):
    lease, work = world.begin(world.waiting("甲"), "n1")
    names = [hit("1"), hit("2")]
    (one, _) = world.read_results(lease, work.targets[0], names).todo
    world.save(lease, one)
    world.pass_s(5)
    again, more = world.begin(world.waiting("乙"), "n2")
    read = world.result_page(again, more.targets[0], [*names, hit("3")])
    for _ in range(2):  # a COMMIT whose answer was lost is done twice
        world.do(save_result_pages, [read])
    first, second = world.rows(result_pages)
    assert (first.site, first.engine, first.node, first.at) == (SITE, "baidu", "n1", START)
    assert (second.node, second.at) == ("n2", START + timedelta(seconds=5))
    for row, its in ((first, lease), (second, again)):
        subtask = world.subtask(its.subtask_id)
        assert (row.product_id, row.part_id) == (subtask.product_id, subtask.part_id)
    assert second.hits == b"".join(page_key(url)[:8] for url in (*names, hit("3")))


def test_old_result_pages_go_with_the_log(world):
    lease, work = world.begin(world.waiting("甲"))
    world.read_results(lease, work.targets[0], [hit("1")])
    world.pass_s(100)
    again, more = world.begin(world.waiting("乙"))
    world.read_results(again, more.targets[0], [hit("2")])
    keep = timedelta(seconds=50)
    world.do(lambda tx: upkeep.drop_batch(tx, upkeep.RESULT_PAGES, timedelta(days=1)))
    assert len(world.rows(result_pages)) == 2
    assert upkeep.drop_old(lambda operation: int(world.do(operation)), keep)
    assert [row.node for row in world.rows(result_pages)] == ["n1"]
    assert world.rows(result_pages)[0].at == world.now
