"""The local cache, the batches and the write-behind, over a shared set that is told when to answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.worker import seen as seen_module
from tasks.worker.seen import SeenKeys, SeenPages


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


def keys(*numbers: int) -> list[bytes]:
    return [key(number) for number in numbers]


class Shared:
    """A set in memory; `door` closed: no trip comes back."""

    def __init__(self, *numbers: int) -> None:
        self.stored = set(keys(*numbers))
        self.asked: list[list[bytes]] = []
        self.told: list[list[bytes]] = []
        self.away = False
        self.door = asyncio.Event()
        self.door.set()

    async def has(self, some: Sequence[bytes]) -> list[bool] | None:
        self.asked.append(list(some))
        await self.door.wait()
        return None if self.away else [one in self.stored for one in some]

    async def add(self, some: Sequence[bytes]) -> bool:
        self.told.append(list(some))
        await self.door.wait()
        if self.away:
            return False
        self.stored.update(some)
        return True


async def settle() -> None:
    """Let everything go on that can."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_only_the_cache_is_sure_and_the_rest_is_asked():
    async def story():
        shared = Shared(1, 2)
        seen = SeenPages(shared)
        seen.confirm(keys(1))
        assert await seen.look_up(keys(1, 2, 3, 2)) == SeenKeys(frozenset(keys(1)), frozenset(keys(2)))
        assert shared.asked == [keys(2, 3)]
        assert await seen.look_up([]) == SeenKeys(frozenset(), frozenset())
        assert len(shared.asked) == 1

    asyncio.run(story())


def test_without_a_shared_set_the_database_has_to_say():
    async def story():
        seen = SeenPages(None)
        seen.add_stored(keys(1))
        assert await seen.look_up(keys(1, 2)) == SeenKeys(frozenset(keys(1)), frozenset(keys(2)))
        await seen.close()

    asyncio.run(story())


def test_questions_of_several_attempts_share_a_round_trip():
    async def story():
        shared = Shared(2, 3)
        seen = SeenPages(shared)
        one, two = await asyncio.gather(seen.look_up(keys(1, 2)), seen.look_up(keys(3, 4)))
        assert shared.asked == [keys(1, 2, 3, 4)]
        assert (one.maybe, two.maybe) == (frozenset(keys(2)), frozenset(keys(3)))

    asyncio.run(story())


def test_what_is_asked_while_trips_are_under_way_leaves_together():
    async def story():
        shared = Shared()
        seen = SeenPages(shared, batch=5)
        shared.door.clear()
        questions = []
        for number in range(20):
            questions.append(asyncio.create_task(seen.look_up(keys(number))))
            await settle()
        under_way = seen_module._TRIPS
        assert [len(one) for one in shared.asked] == [1] * under_way
        shared.door.set()
        await asyncio.gather(*questions)
        assert [len(one) for one in shared.asked] == [1] * under_way + [5, 5, 5, 1]

    asyncio.run(story())


def test_grain_1_and_no_cache_is_a_trip_for_every_key():
    async def story():
        shared = Shared(1)
        seen = SeenPages(shared, remembered=0, batch=1)
        seen.add_stored(keys(1, 2))
        await seen.close()
        assert shared.told == [keys(1), keys(2)]
        for _ in range(2):
            assert (await seen.look_up(keys(1, 2, 3))).maybe == frozenset(keys(1, 2))
        assert shared.asked == [keys(1), keys(2), keys(3)] * 2

    asyncio.run(story())


def test_the_cache_forgets_what_was_not_used_longest():
    async def story():
        seen = SeenPages(None, remembered=3)
        seen.confirm(keys(1, 2, 3))
        await seen.look_up(keys(1))
        seen.confirm(keys(4, 3))
        assert (await seen.look_up(keys(1, 2, 3, 4))).sure == frozenset(keys(1, 3, 4))

    asyncio.run(story())


def test_a_set_that_cannot_tell_makes_all_a_maybe():
    async def story():
        shared = Shared(1)
        shared.away = True
        seen = SeenPages(shared)
        assert (await seen.look_up(keys(1, 2))).maybe == frozenset(keys(1, 2))

    asyncio.run(story())


def test_stored_pages_are_sure_at_once_and_told_in_grains():
    async def story():
        shared = Shared()
        seen = SeenPages(shared, batch=3)
        seen.add_stored(keys(1, 2))
        await settle()
        assert (await seen.look_up(keys(1, 2))).sure == frozenset(keys(1, 2))
        assert shared.told == []
        seen.add_stored(keys(3, 4))
        await settle()
        assert shared.told == [keys(1, 2, 3), keys(4)]
        seen.add_stored(keys(5))
        await seen.close()
        assert shared.told[2:] == [keys(5)]

    asyncio.run(story())


def test_what_could_not_be_told_is_told_later():
    async def story():
        shared = Shared()
        seen = SeenPages(shared, batch=2)
        shared.away = True
        seen.add_stored(keys(1, 2))
        await settle()
        shared.away = False
        await seen.close()
        assert shared.stored == set(keys(1, 2))
        assert shared.told == [keys(1, 2)] * 2

    asyncio.run(story())


def test_a_cancelled_attempt_disturbs_nobody():
    async def story():
        shared = Shared(2)
        shared.door.clear()
        seen = SeenPages(shared)
        gone, stays = asyncio.create_task(seen.look_up(keys(1))), asyncio.create_task(seen.look_up(keys(2)))
        await settle()
        gone.cancel()
        await settle()
        shared.door.set()
        assert (await stays).maybe == frozenset(keys(2))
        assert gone.cancelled()

    asyncio.run(story())


def test_an_error_reaches_whoever_asked():
    class Broken(Shared):
        async def has(self, some: Sequence[bytes]) -> list[bool] | None:
            raise RuntimeError("a mistake of ours")

    async def story():
        with pytest.raises(RuntimeError, match="of ours"):
            await SeenPages(Broken(), batch=1).look_up(keys(1, 2, 3))

    asyncio.run(story())


@pytest.mark.parametrize(("remembered", "batch"), [(-1, 1), (0, 0)])
def test_impossible_bounds_are_refused(remembered, batch):
    with pytest.raises(ValueError, match="at least"):
        SeenPages(None, remembered=remembered, batch=batch)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ask", "add_stored", "confirm"]), st.lists(st.integers(0, 12), max_size=9)
        ),
        max_size=20,
    ),
    st.integers(0, 6),
    st.integers(1, 5),
)
def test_no_page_is_called_sure_that_was_not_committed_and_no_told_one_new(steps, remembered, batch):
    async def story():
        shared = Shared()
        seen = SeenPages(shared, remembered=remembered, batch=batch)
        committed: set[bytes] = set()
        for what, numbers in steps:
            some = keys(*numbers)
            if what == "ask":
                asked = await seen.look_up(some)
                assert asked.sure <= committed & set(some)
                assert not asked.sure & asked.maybe
                assert shared.stored & set(some) <= asked.sure | asked.maybe
            else:
                committed.update(some)
                getattr(seen, what)(some)
        await seen.close()
        assert shared.stored <= committed
        assert len(seen._cache) <= remembered
        assert all(len(one) <= batch for one in shared.asked + shared.told)

    asyncio.run(story())
