"""What buffering between a crawl node and its far servers is worth: the experiments of Lu et al. 2022 on our own code.

A crawl node reads result pages of 40 hits, 32 of them stored before, and crawls the 8 new ones; Redis and
PostgreSQL are 0 to 90 ms away (round trip, `research.tools.delayproxy`), the control worker is next to them. Four settings
of the same code: none (each lease, result and duplicate question travels alone, nothing is remembered), cache only,
batches only, both (the product's defaults); and scrapy-redis on the same pages.

Result pages a second count from the moment the node's process begins: its start, over the same delay, is in them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from research.bench.buffer_peers import cluster
from research.bench.buffer_peers.cluster import Run, Servers, count_at
from research.tools.delayproxy import delayed
from research.tools.plots import lines, plots_option
from tasks.domain.batches import MOST_AT_ONCE
from tasks.worker.settings import REMEMBERED

_PREPARED = 8000
"""Result pages that the servers hold: more than a run reads."""
# How long a node crawls. The same for all that is compared: a ratio of two runs has the same time in both.
_MAIN_S, _TIMELINE_S, _OTHERS_S, _PEER_S = 45.0, 20.0, 15.0, 10.0
_BATCHES = (10, 20, 50, 100, 200)
_BATCH_MS, _BATCH_TASKS, _BATCH_MOST_S = 50, 100, 40.0
SETTINGS = {
    "none": (1, 0),
    "cache only": (1, REMEMBERED),
    "batches only": (MOST_AT_ONCE, 0),
    "both": (MOST_AT_ONCE, REMEMBERED),
}
"""The product's settings `batch` and `remembered`, by name."""
_PEER_MS = (0, 10, 90)
_ROUND_TRIPS = {
    "none": _PEER_MS,
    "cache only": _PEER_MS,
    "batches only": _PEER_MS,
    "both": (0, 10, 30, 50, 70, 90),
}
"""Milliseconds, by setting."""
_PRINTED = {
    "both_vs_none_10ms": "nearly 4 (3 nodes, 10 Mb/s)",
    "both_by_round_trip": "falls fast and not linearly from 10 to 90 ms",
    "seconds_by_batch": "fall like 1 / batch from 10 to 200 at 50 ms",
}
"""What the paper prints, by our figure."""
_NOTE = "Paper (Lu et al. 2022): "


@plots_option
def run(_shared: Path, smallest: bool, plots: Path | None = None) -> dict[str, Any]:
    """Measure everything; about nine and a half minutes.

    Args:
        plots: folder for figure-4.png, figure-5.png and figure-6.png; None: no plots.

    Returns:
        ``ratios``: `both_10ms_vs_0ms`, `both_90ms_vs_0ms`, `both_vs_none_10ms`, `vs_scrapy_redis_10ms`, all of
        result pages a second, the start of the process included; ``figures``: everything measured, by setting and
        round trip.
    """
    prepared, enough = (100, 20) if smallest else (_PREPARED, None)
    peer_ms = _PEER_MS if find_spec("scrapy_redis") and not smallest else ()
    with (
        tempfile.TemporaryDirectory(prefix="reviewloop-bench-") as folder,
        cluster.servers(Path(folder), prepared) as on,
    ):
        runs = {
            name: {ms: _run(on, name, ms, enough) for ms in round_trips}
            for name, round_trips in ({"both": (10,)} if smallest else _ROUND_TRIPS).items()
        }
        peer = {ms: _scrapy_redis(on, ms) for ms in peer_ms}
        batches = {batch: _batch(on, batch) for batch in (() if smallest else _BATCHES)}
    if plots is not None and not smallest:
        _draw(plots, runs, peer, batches)
    return {
        "bench": "buffers",
        "ratios": ratios(runs, peer),
        "figures": {
            "paper": _PRINTED,
            "slots": cluster.SLOTS,
            "result_pages_per_s": {
                name: {f"{ms}ms": _figures(one) for ms, one in of.items()} for name, of in runs.items()
            },
            "scrapy_redis": {f"{ms}ms": one for ms, one in peer.items()},
            f"seconds_for_{_BATCH_TASKS}_at_{_BATCH_MS}ms_by_batch": {
                str(batch): _short(one.seconds_for(_BATCH_TASKS)) for batch, one in batches.items()
            },
            **({} if find_spec("scrapy_redis") else {"not_installed": ["scrapy_redis"]}),
        },
    }


def ratios(
    runs: Mapping[str, Mapping[int, Run]], peer: Mapping[int, Mapping[str, float]]
) -> dict[str, float | None]:
    """Return ratios of result pages a second, the start included; None if the other one read nothing, or was not run.

    Runs are compared over the same time: the longer one counts as far as the shorter one went.
    """
    near, middle, far = (runs["both"].get(ms) for ms in (0, 10, 90))
    none = runs.get("none", {}).get(10)
    scrapy_redis = peer.get(10, {}).get("results_per_s", 0.0)
    none_s = none.lasted_s if none is not None else None
    return {
        "both_10ms_vs_0ms": _share(_rate(middle), _rate(near), 3),
        "both_90ms_vs_0ms": _share(_rate(far), _rate(near), 3),
        "both_vs_none_10ms": _share(_rate(middle, none_s), _rate(none), 2),
        "vs_scrapy_redis_10ms": _share(_rate(middle), scrapy_redis, 2),
    }


def _rate(run: Run | None, seconds: float | None = None) -> float | None:
    return run.rate(seconds) if run is not None else None


def _share(ours: float | None, other: float | None, digits: int) -> float | None:
    return round(ours / other, digits) if ours is not None and other else None


def _figures(one: Run) -> dict[str, Any]:
    return {
        "per_s": round(one.rate(), 2),
        "per_s_since_first": round(one.rate_since_first(), 2),
        "first_s": _short(one.first_s),
        "seconds": round(one.lasted_s, 1),
        "attempts": one.attempts,
    }


def _run(on: Servers, name: str, ms: int, enough: int | None) -> Run:
    seconds = _TIMELINE_S if name == "both" or ms == 10 else _OTHERS_S
    if name == "both" and ms in _PEER_MS:
        seconds = _MAIN_S
    return cluster.crawl(on, f"{name.split()[0]}_{ms}", ms / 1000, seconds, *SETTINGS[name], enough=enough)


def _batch(on: Servers, batch: int) -> Run:
    """Crawl until 100 result pages are read, at most 40 s."""
    run_name = f"batch_{batch}"
    return cluster.crawl(
        on, run_name, _BATCH_MS / 1000, _BATCH_MOST_S, batch, REMEMBERED, enough=_BATCH_TASKS
    )


def _scrapy_redis(on: Servers, ms: int) -> dict[str, float]:
    from research.bench.buffer_peers import scrapy_redis_crawl  # an optional dependency

    at = urlsplit(on.redis_url)
    with delayed([f"127.0.0.1:{at.port}"], ms / 1000) as (port,):
        far = at._replace(netloc=f":{at.password}@127.0.0.1:{port}").geturl()
        order = scrapy_redis_crawl.Order(far, on.redis_url, on.page_port, _PEER_S, _PREPARED)
        done = scrapy_redis_crawl.crawled(order)
    return {"results_per_s": round(done["results"] / done["seconds"], 2), **done}


def _short(value: float | None) -> float | None:
    return round(value, 2) if value is not None else None


def _draw(
    folder: Path,
    runs: Mapping[str, Mapping[int, Run]],
    peer: Mapping[int, Mapping[str, float]],
    batches: Mapping[int, Run],
) -> None:
    ours = {
        name: [(float(ms), one.rate_since_first()) for ms, one in of.items()] for name, of in runs.items()
    }
    theirs = [(float(ms), one["results_per_s"]) for ms, one in peer.items()]
    lines(
        folder / "figure-4.png",
        "Throughput against the round trip to Redis and PostgreSQL",
        ("round trip (ms)", "result pages per second, from the first one on"),
        {**ours, **({"scrapy-redis": theirs} if theirs else {})},
        f"{_NOTE}throughput of 100 tasks falls fast and not linearly from 10 to 90 ms",
    )
    took = ((float(batch), one.seconds_for(_BATCH_TASKS)) for batch, one in batches.items())
    lines(
        folder / "figure-5.png",
        f"Time for {_BATCH_TASKS} result pages at {_BATCH_MS} ms, by batch",
        ("batch (items in one round trip)", "seconds from the start of the node's process"),
        {"both": [(batch, seconds) for batch, seconds in took if seconds is not None]},
        f"{_NOTE}time for 1,000 tasks at 50 ms falls like 1/batch: beyond some size more is of no use",
    )
    lines(
        folder / "figure-6.png",
        "Throughput second by second at 10 ms",
        ("seconds from the start of the node's process", "result pages per second"),
        {name: each_second(of[10].counts, _TIMELINE_S) for name, of in runs.items()},
        f"{_NOTE}3 nodes, 120 s: the duplicate check costs most, then scheduling; both: nearly 4 times none",
    )


def each_second(counts: Sequence[tuple[float, int]], seconds: float) -> list[tuple[float, float]]:
    """Return the result pages read in each whole second, by the end of that second.

    Args:
        counts: (seconds, result pages read by then), ascending.
        seconds: the last second wanted; counts may end before it.
    """
    last = int(min(seconds, counts[-1][0]))
    at = [count_at(counts, float(second)) for second in range(last + 1)]
    return [(float(second), at[second] - at[second - 1]) for second in range(1, last + 1)]
