"""Every stored page's key comes once, in batches, whatever their size."""

from __future__ import annotations

import pytest
from world import World, hit

from tasks.domain.page_key import page_key
from tasks.store.content.known_pages import page_count, page_keys


def test_an_empty_store_has_no_keys(world: World) -> None:
    assert (page_count(world.store), list(page_keys(world.store))) == (0, [])


@pytest.mark.parametrize("batch", [1, 2, 5, 100])
def test_all_keys_in_batches(world: World, batch: int) -> None:
    lease, work = world.begin(world.waiting("甲"))
    names = [str(n) for n in range(5)]
    for target in world.read_results(lease, work.targets[0], [hit(name) for name in names]).todo:
        world.save(lease, target)
    found = list(page_keys(world.store, batch))
    assert sorted(key for some in found for key in some) == sorted(page_key(hit(name)) for name in names)
    assert all(len(some) <= batch for some in found)
    assert page_count(world.store) == 5
