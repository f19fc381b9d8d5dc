"""What it costs to know which pages are stored: memory for 10 million addresses, wrong yeses, questions a second.

The shared set (a Bloom filter in Redis) is filled with 10 million keys by its own rebuild and asked for a million
others. Beside it: a Redis SET of the same keys (measured at 625,000 and taken 16 times, where its hash table is as full
as at 10 million), the local cache, and the database's unique index in SQLite (measured at 500,000, taken 20 times).
Redis is a private server on loopback; its memory is what it reports. Takes about two minutes.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from redis.asyncio import Redis

from app.run.cluster.servers import RedisServer
from research.tools.processes import running
from tasks.worker.redis_seen import RedisSeen
from tasks.worker.seen import SeenPages

_BATCH = 500
_BATCHES_ASKED = (1, 40, 400)


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Keys in the filter, asked that are absent, in the Redis set, in the index and in the cache; seconds of asking."""

    pages: int = 10_000_000
    absent: int = 1_000_000
    in_set: int = 625_000
    in_index: int = 500_000
    cached: int = 200_000
    asking_s: float = 2.0


def run(_shared: Path, smallest: bool) -> dict[str, Any]:
    """Measure all of it.

    Returns:
        ``ratios``: memory of a Redis SET and of the database's index against the filter's, and questions a second in
        batches of 40 and 400 against one at a time. ``figures``: bytes, shares and rates behind them.
    """
    sizes = _Sizes(20_000, 2_000, 1_250, 1_000, 1_000, 0.1) if smallest else _Sizes()
    with tempfile.TemporaryDirectory(prefix="reviewloop-bench-") as folder:
        redis = RedisServer(Path(folder) / "redis", Path(folder) / "redis.log")
        with running(redis):
            figures = asyncio.run(_in_redis(redis.url, sizes))
        figures |= _in_index(Path(folder) / "index.db", sizes)
    figures |= _in_cache(sizes)
    bloom = figures["bloom_mb_10m"]
    alone = figures["questions_per_s_1"]
    ratios = {
        "redis_set_memory_vs_bloom": round(figures["redis_set_mb_10m"] / bloom, 1),
        "index_size_vs_bloom": round(figures["sqlite_index_mb_10m"] / bloom, 1),
        "questions_40_vs_1": round(figures["questions_per_s_40"] / alone, 1),
        "questions_400_vs_1": round(figures["questions_per_s_400"] / alone, 1),
    }
    return {"bench": "seen", "ratios": ratios, "figures": figures}


def _keys(seed: int, count: int) -> Iterator[list[bytes]]:
    """Keys as evenly spread as the digests they stand for, in batches."""
    rng = Random(seed)
    for start in range(0, count, _BATCH):
        n = min(_BATCH, count - start)
        some = rng.randbytes(16 * n)
        yield [some[at : at + 16] for at in range(0, 16 * n, 16)]


async def _in_redis(url: str, sizes: _Sizes) -> dict[str, float]:
    async with Redis.from_url(url) as redis:
        empty = await _used(redis)
        seen = RedisSeen(redis, time.monotonic)
        begin = time.perf_counter()
        await seen.rebuild(sizes.pages // 2, _keys(1, sizes.pages))
        figures = {"rebuild_10m_s": round(time.perf_counter() - begin, 1)}
        figures["bloom_mb_10m"] = _mb(await _used(redis) - empty)
        wrong = 0
        for some in _keys(2, sizes.absent):
            wrong += sum(await _answers(seen, some))
        figures["false_positives_of_1m"] = wrong
        figures["false_positive_rate"] = wrong / sizes.absent
        for n in _BATCHES_ASKED:
            half = [key for some in _keys(1, n) for key in some]
            half[: n // 2] = [key for some in _keys(3, n) for key in some][: n // 2]
            figures[f"questions_per_s_{n}"] = round(n * await _rate(seen, half, sizes.asking_s))
        await redis.flushall()
        empty = await _used(redis)
        for some in _keys(1, sizes.in_set):
            await redis.sadd("pages", *some)
        figures["redis_set_mb_10m"] = _mb((await _used(redis) - empty) * sizes.pages // sizes.in_set)
        return figures


async def _used(redis: Redis) -> int:
    told = await redis.info("memory")
    return int(told["used_memory"])


async def _answers(seen: RedisSeen, keys: Sequence[bytes]) -> list[bool]:
    answers = await seen.has(keys)
    assert answers is not None, "the set was filled just now"
    return answers


async def _rate(seen: RedisSeen, keys: Sequence[bytes], asking_s: float) -> float:
    """Return questions of these keys a second, one after the other."""
    asked, begin = 0, time.perf_counter()
    while (took := time.perf_counter() - begin) < asking_s:
        await _answers(seen, keys)
        asked += 1
    return asked / took


def _in_cache(sizes: _Sizes) -> dict[str, float]:
    """Measure the local cache: bytes an entry, its key included."""
    cache = SeenPages(None, remembered=sizes.cached)
    tracemalloc.start()
    for some in _keys(1, sizes.cached):
        cache.confirm(some)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {"cache_bytes_per_entry": round(used / sizes.cached, 1)}


def _in_index(path: Path, sizes: _Sizes) -> dict[str, float]:
    """Measure the database's unique index over keys that came in any order."""
    file_bytes = []
    for unique in ("", "UNIQUE"):
        path.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as conn:
            conn.execute(f"CREATE TABLE pages (id INTEGER PRIMARY KEY, url_key BLOB NOT NULL {unique})")
            conn.executemany(
                "INSERT INTO pages (url_key) VALUES (?)",
                ((key,) for some in _keys(1, sizes.in_index) for key in some),
            )
            conn.commit()
            file_bytes.append(path.stat().st_size)
    return {"sqlite_index_mb_10m": _mb((file_bytes[1] - file_bytes[0]) * sizes.pages // sizes.in_index)}


def _mb(size: int) -> float:
    return round(size / 1e6, 1)
