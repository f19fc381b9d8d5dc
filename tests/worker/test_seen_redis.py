"""The cluster's set of stored pages in a real Redis: never a wrong no, few wrong yeses, and no harm when it is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from hashlib import blake2b

import pytest
from patience import PATIENCE_S
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from tasks.worker import redis_seen
from tasks.worker.redis_seen import BLOCK_BITS, ERROR, HASHES, RedisSeen
from tasks.worker.seen import SeenPages

HEAD = "reviewloop:{seen:1}"


def key(number: int) -> bytes:
    return blake2b(str(number).encode(), digest_size=16).digest()


def keys(first: int, end: int) -> list[bytes]:
    return [key(number) for number in range(first, end)]


def batches(first: int, end: int, size: int = 500) -> Iterator[list[bytes]]:
    for start in range(first, end, size):
        yield keys(start, min(start + size, end))


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Redis that is slow here is no Redis that hangs."""
    monkeypatch.setattr(redis_seen, "_TIMEOUT_S", PATIENCE_S)


@pytest.fixture
def run(redis_url: str) -> Callable[[Callable[[Redis], Awaitable[None]]], None]:
    def to_its_end(story: Callable[[Redis], Awaitable[None]]) -> None:
        async def whole() -> None:
            async with Redis.from_url(redis_url) as client:
                await story(client)

        asyncio.run(whole())

    return to_its_end


def made(redis: Redis, first_capacity: int = 1000) -> RedisSeen:
    return RedisSeen(redis, lambda: 0.0, first_capacity=first_capacity)


def test_every_key_in_it_is_a_yes_and_few_others_are(run):
    async def story(redis):
        seen = made(redis)
        assert await seen.rebuild(0, batches(0, 600))
        assert await seen.add(keys(600, 1000))
        assert await seen.has(keys(0, 1000)) == [True] * 1000
        wrong = sum([sum(await seen.has(some)) for some in batches(10_000, 30_000)])
        assert wrong <= 20_000 * ERROR
        assert await seen.has([]) == []

    run(story)


def test_bits_lie_where_the_key_says(run):
    async def story(redis):
        seen = made(redis)
        await seen.rebuild(0, [])
        one = key(1)
        await seen.add([one])
        blocks = int(await redis.hget(HEAD, "blocks:1"))
        start = int.from_bytes(one[:6], "big") % blocks * BLOCK_BITS
        places = {start + one[6 + i] + 256 * (one[14] >> i & 1) for i in range(HASHES)}
        bits = await redis.get(f"{HEAD}:1")
        assert len(bits) == blocks * BLOCK_BITS // 8
        assert {at for at in range(8 * len(bits)) if bits[at // 8] & (128 >> at % 8)} == places

    run(story)


def test_a_full_layer_is_followed_by_a_larger_one(run):
    async def story(redis):
        seen, other = made(redis, 100), made(redis, 100)
        await seen.rebuild(0, [])
        for some in batches(0, 2000, 50):
            assert await other.add(some)
        head = await redis.hgetall(HEAD)
        assert int(head[b"layers"]) >= 4
        assert int(head[b"capacity"]) == 100 * 2 ** (int(head[b"layers"]) - 1)
        assert await seen.has(keys(0, 2000)) == [True] * 2000
        wrong = sum([sum(await seen.has(some)) for some in batches(10_000, 20_000)])
        assert wrong <= 10_000 * ERROR

    run(story)


def test_a_key_that_is_told_again_fills_nothing(run):
    async def story(redis):
        seen = made(redis)
        await seen.rebuild(0, [])
        for _ in range(3):
            await seen.add(keys(0, 300))
        assert 295 <= int(await redis.hget(HEAD, "count")) <= 300

    run(story)


def test_a_flushed_set_cannot_tell_until_it_is_rebuilt(run):
    async def story(redis):
        seen = made(redis)
        assert await seen.has(keys(0, 2)) is None, "an empty Redis is no empty set"
        assert await seen.add(keys(0, 2)), "dropped: whoever rebuilds reads them from the database"
        assert await seen.rebuild(2, [keys(0, 2)])
        assert await seen.has(keys(0, 2)) == [True, True]
        await redis.flushdb()
        assert await seen.has(keys(0, 2)) is None
        assert await seen.rebuild(2, [keys(0, 2)])
        assert await seen.has(keys(0, 2)) == [True, True]

    run(story)


def test_an_evicted_layer_is_no_wrong_no(run):
    async def story(redis):
        seen = made(redis)
        await seen.rebuild(0, [keys(0, 10)])
        await redis.delete(f"{HEAD}:1")
        assert await seen.has(keys(0, 10)) is None
        assert not await redis.exists(HEAD)
        assert await seen.rebuild(0, [keys(0, 10)])
        assert await seen.has(keys(0, 10)) == [True] * 10

    run(story)


def test_one_rebuilds_while_the_others_go_on(run):
    async def story(redis):
        seen, other = made(redis), made(redis)

        def reading() -> Iterator[list[bytes]]:
            # Between batches another process stores a page, asks, and comes to rebuild.
            yield keys(0, 5)
            yield keys(5, 10)

        class Half(RedisSeen):
            async def _add_keys(self, some):
                assert await other.has(keys(0, 1)) is None, "half a set says no to what it will have"
                assert not await other.rebuild(0, reading())
                assert await other.add(keys(100, 101))
                return await super()._add_keys(some)

        assert await Half(redis, lambda: 0.0, first_capacity=1000).rebuild(0, reading())
        assert await seen.has([*keys(0, 10), key(100)]) == [True] * 11
        assert not await seen.rebuild(0, reading()), "it is there"

    run(story)


def test_a_rebuild_that_was_cut_off_is_finished_by_the_next(run):
    async def story(redis):
        def broken() -> Iterator[list[bytes]]:
            yield keys(0, 5)
            raise RuntimeError("the database went away")

        seen = made(redis)
        with pytest.raises(RuntimeError):
            await seen.rebuild(0, broken())
        assert await seen.has(keys(0, 5)) is None
        assert not await seen.rebuild(0, [keys(0, 10)]), "the one who was at it may be alive"
        await redis.delete(f"{HEAD}:building")  # as its expiry does
        assert await seen.rebuild(0, [keys(0, 10)])
        assert await seen.has(keys(0, 10)) == [True] * 10

    run(story)


def test_a_set_flushed_during_its_rebuild_is_not_called_whole(run):
    async def story(redis):
        class Flushed(RedisSeen):
            async def _add_keys(self, some):
                if some == keys(5, 10):
                    await redis.flushdb()
                return await super()._add_keys(some)

        seen = Flushed(redis, lambda: 0.0)
        assert not await seen.rebuild(0, [keys(0, 5), keys(5, 10), keys(10, 15)])
        assert await seen.has(keys(0, 15)) is None

    run(story)


def test_a_redis_that_hangs_is_not_waited_for(monkeypatch):
    class Hanging:
        def register_script(self, _script):
            return self

        async def __call__(self, **_named):
            await asyncio.Event().wait()

    async def story():
        seen = RedisSeen(Hanging(), lambda: 0.0)
        assert await seen.has(keys(0, 1)) is None
        assert not await seen.add(keys(0, 1))

    monkeypatch.setattr(redis_seen, "_TIMEOUT_S", 0.0)
    asyncio.run(story())


def test_while_redis_is_away_all_is_maybe_and_each_loss_is_noted():
    lost = []

    class Away:
        calls = 0

        def register_script(self, _script):
            return self

        async def __call__(self, **_named):
            self.calls += 1
            raise RedisConnectionError("refused")

    async def story():
        now = 0.0
        away = Away()
        seen = SeenPages(RedisSeen(away, lambda: now, lost.append), batch=2)
        seen.add_stored(keys(0, 2))
        for _ in range(3):
            assert (await seen.look_up(keys(5, 7))).maybe == frozenset(keys(5, 7))
        assert (await seen.look_up(keys(0, 1))).sure == frozenset(keys(0, 1))
        assert away.calls == 1, "it is left alone for some seconds"
        now = 5.0
        assert (await seen.look_up(keys(5, 7))).maybe == frozenset(keys(5, 7))
        assert away.calls == 2
        await seen.close()

    asyncio.run(story())
    assert [str(error) for error in lost] == ["refused", "refused"]
