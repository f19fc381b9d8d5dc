"""How well eight processes keep one host's limits together, and how much of them they use.

Each process is a node with a source address of its own, the real downloader and the cluster's send times over a private
Redis. The judge is the log of the lab, another process: what a node believes of itself does not count.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from app.run.cluster.servers import RedisServer
from app.run.process import run_coroutine
from research.bench.field.processes import command
from research.tools.processes import forkserver, running
from splitter.catalog.model import Limits
from tasks.domain.failures import FetchError
from tasks.fetching.downloader import Downloader
from tasks.fetching.pace import AnswerSample
from tasks.fetching.redis_permits import RedisPermits

LANES = 4
WINDOW_S = 10.0
_START_S = 60.0
_PROFILE = "name: bench\npairs:\n  - latency_ms: [20, 80]\n"


@dataclass(frozen=True, slots=True)
class Case:
    """One measurement.

    Attributes:
        name: prefix of its ratios; empty for the main one.
        host: is asked, a site of the catalog that no other case asks.
        seconds: how long the nodes ask.
        kill_at_s: when one of them is killed; None: none is.
        nodes: how many ask.
    """

    name: str
    host: str
    limits: Limits
    seconds: float
    kill_at_s: float | None = None
    nodes: int = 8

    @property
    def limit_per_s(self) -> float:
        """Requests a second that all nodes together may send."""
        return min(self.limits.total_per_s, self.nodes * self.limits.per_address_per_s)


_TOTAL, _OWN = Limits(per_address_per_s=20, total_per_s=50), Limits(per_address_per_s=3, total_per_s=50)
_CASES = (
    Case("", "12315.com", _TOTAL, 40.0),
    Case("per_address.", "cca.org.cn", _OWN, 20.0),
    Case("killed.", "xfb315.com", _TOTAL, 24.0, kill_at_s=10.0),
)
_SMALLEST = (
    Case("", "12315.com", _TOTAL, 1.0, nodes=2),
    Case("per_address.", "cca.org.cn", _OWN, 0.7, nodes=2),
    Case("killed.", "xfb315.com", _TOTAL, 1.0, kill_at_s=0.4, nodes=2),
)


def run(_shared: Path, smallest: bool) -> dict[str, Any]:
    """Measure every case.

    Returns:
        ``ratios``: `max_over_limit_10s`, the most requests in any 10 s over 10 x limit + 1, of the host as a whole or
        of one address, whichever is worse (above 1 = the limit was broken), and `used_of_limit`, the share of the
        limit that was asked from the moment all nodes had begun; ``figures``: the counts behind them.
    """
    ratios: dict[str, float] = {}
    figures: dict[str, Any] = {"lanes": LANES}
    with tempfile.TemporaryDirectory(prefix="reviewloop-bench-") as name:
        folder = Path(name)
        redis = RedisServer(folder / "redis", folder / "redis.log")
        profile = folder / "profile.yaml"
        profile.write_text(_PROFILE, encoding="utf-8")
        log = folder / "requests.jsonl"
        options = ("lab", "--port", "0", "--profile", str(profile), "--log", str(log), "--json")
        with running(redis), command(options, folder / "lab.txt") as started:
            at = json.loads(started.ready())
            for case in _SMALLEST if smallest else _CASES:
                _crawl(case, (at["host"], at["port"]), redis.url)
                judged = judge(case, _times(log, case.host))
                for key in ("max_over_limit_10s", "used_of_limit"):
                    ratios[case.name + key] = judged.pop(key)
                figures[case.name.rstrip(".") or "total"] = judged
    return {"bench": "politeness", "ratios": ratios, "figures": figures}


def judge(case: Case, times: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Ratios and figures of a case.

    Args:
        case: what was asked for.
        times: when each address asked, in seconds, ascending.
    """
    everything = sorted(time for own in times.values() for time in own)
    begun_s = max(own[0] for own in times.values())
    lasted_s = everything[-1] - begun_s
    asked = sum(time >= begun_s for time in everything)
    most, own_most = fullest(everything), max(fullest(own) for own in times.values())
    limits = case.limits
    over_total = most / (WINDOW_S * limits.total_per_s + 1)
    over_own = own_most / (WINDOW_S * limits.per_address_per_s + 1)
    return {
        "max_over_limit_10s": round(max(over_total, over_own), 4),
        "used_of_limit": round(asked / (case.limit_per_s * lasted_s), 4) if lasted_s else None,
        "limit_per_s": {"address": limits.per_address_per_s, "total": limits.total_per_s},
        "lasted_s": round(lasted_s, 1),
        "requests": len(everything),
        "most_in_10s": {"total": most, "address": own_most},
        "over_limit_10s": {"total": round(over_total, 4), "address": round(over_own, 4)},
    }


def fullest(times: Sequence[float], window_s: float = WINDOW_S) -> int:
    """The most of these times (ascending) within any window, both of its ends included."""
    most = first = 0
    for last, at in enumerate(times):
        while times[first] < at - window_s:
            first += 1
        most = max(most, last - first + 1)
    return most


def _crawl(case: Case, lab: tuple[str, int], redis_url: str) -> None:
    """Let the nodes ask for as long as the case says."""
    context = forkserver()
    ready = context.Barrier(case.nodes + 1)
    nodes: list[BaseProcess] = [
        context.Process(target=_node, args=(ready, case, lab, redis_url, f"127.0.0.{n + 2}"), daemon=True)
        for n in range(case.nodes)
    ]
    try:
        for node in nodes:
            node.start()
        ready.wait(_START_S)
        if case.kill_at_s is not None:
            time.sleep(case.kill_at_s)
            nodes[0].kill()
        for node in nodes:
            node.join(case.seconds + _START_S)
    finally:
        for node in nodes:
            node.kill()


def _node(ready: Barrier, case: Case, lab: tuple[str, int], redis_url: str, address: str) -> None:
    """What one node's process does."""
    run_coroutine(_asks(ready, case, lab, redis_url, address))


async def _asks(ready: Barrier, case: Case, lab: tuple[str, int], redis_url: str, address: str) -> None:
    async with (
        Redis.from_url(redis_url) as redis,
        Downloader(
            user_agent="reviewloop bench",
            clock=lambda: datetime.now(UTC),
            local_address=address,
            lab=lab,
        ) as downloader,
    ):
        await redis.ping()
        await asyncio.to_thread(ready.wait, _START_S)
        end = time.monotonic() + case.seconds
        permits = RedisPermits(redis, time.monotonic)

        async def in_turn(_url: str) -> None:
            await asyncio.sleep(await permits.reserve(case.host, address, case.limits))

        async def lane(number: int) -> None:
            asked = 0
            while time.monotonic() < end:
                asked += 1
                url = f"http://{case.host}/{address}/{number}/{asked}"
                try:
                    answer = AnswerSample((await downloader.fetch(url, before_request=in_turn)).elapsed_s)
                except FetchError as error:
                    answer = AnswerSample.failure(error, error.response.elapsed_s if error.response else 0.0)
                await permits.observe(case.host, address, case.limits, answer)

        await asyncio.gather(*(lane(number) for number in range(LANES)))


def _times(log: Path, host: str) -> dict[str, list[float]]:
    """When each address asked the host, by the lab's log."""
    times: dict[str, list[float]] = {}
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            if entry["host"] == host:
                times.setdefault(entry["client"], []).append(entry["t"])
    return {address: sorted(own) for address, own in times.items()}
