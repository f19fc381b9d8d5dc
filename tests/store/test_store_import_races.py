"""Imports and undos at the same time, on PostgreSQL, whose writers do not wait for each other."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from test_store_import_undo import bring_reviews, imported

from app.actions import import_actions
from splitter.errors import InputError
from tasks.store.sql import tables


@pytest.mark.slow
def test_imports_and_undos_at_once_leave_what_the_others_have(postgres_world):
    world = postgres_world
    wanted = [imported(f"第{n}条评价", f"牛奶{n % 3}号") for n in range(60)]

    def act(seed: int) -> int | None:
        chance = random.Random(seed)
        number = bring_reviews(world, *chance.sample(wanted, 40))
        if seed % 3 == 0:
            return number
        import_actions.undo(world.store, number, "w")
        return None

    with ThreadPoolExecutor(4) as pool:
        kept = [one for one in pool.map(act, range(24)) if one is not None]
    assert world.verification().violations == ()
    for number in kept:
        import_actions.undo(world.store, number, "w")
    assert [len(world.rows(table)) for table in (tables.products, tables.pages, tables.reviews)] == [0, 0, 0]
    with pytest.raises(InputError, match="undone already"):
        import_actions.undo(world.store, kept[0], "w")
