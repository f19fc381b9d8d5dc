"""`/metrics`: counts from the store for Prometheus. Counts of attempts are sums over all (site, node)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from fastapi import APIRouter
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from starlette.responses import Response

from app.run.version import VERSION
from app.web.base.context import Here
from tasks.domain.breaker import BreakerState
from tasks.jobs.measurements import Measured, load_measurements
from tasks.store.queries import pairs
from tasks.store.queries import queues as queue_queries
from tasks.store.queries.pairs import NEWEST_ATTEMPTS, PairRow
from tasks.store.queue import hosts, nodes, notices, transitions
from tasks.store.queue.nodes import NodeRow
from tasks.store.sql.transaction import Transaction

router = APIRouter()
_PACE_S = 120.0


@router.get("/metrics")
def metrics(page: Here) -> Response:
    """Return the metrics in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_GivenMetrics(page.context.read("metrics", _read)))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


class _GivenMetrics(Collector):
    """A Prometheus collector for metrics that are already computed."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        yield from self._families


def _read(tx: Transaction) -> list[Metric]:
    return [
        _gauge("reviewloop_info", "Version of the dashboard that tells this.", {(VERSION,): 1.0}, "version"),
        *_measure_queues(tx),
        *_measure_pairs(pairs.list_pairs(tx)),
        *_measure_nodes(tx),
        *_measure_hosts(tx),
        *_measure_scheduler(load_measurements(tx), tx.now),
        _gauge(
            "reviewloop_alert",
            "1: an alert that is on.",
            {(row.rule, row.subject): 1.0 for row in notices.list_alerts(tx) if row.firing},
            "rule",
            "subject",
        ),
    ]


def _gauge(name: str, said: str, values: Mapping[Any, float], *labels: str) -> Metric:
    family = GaugeMetricFamily(name, said, labels=labels)
    for of, value in values.items():
        family.add_metric(of, value)
    return family


def _counter(name: str, said: str, values: Mapping[Any, float], *labels: str) -> Metric:
    family = CounterMetricFamily(name, said, labels=labels)
    for of, value in values.items():
        family.add_metric(of, value)
    return family


def _measure_queues(tx: Transaction) -> Iterator[Metric]:
    queues = transitions.count_queues(tx)
    yield _gauge(
        "reviewloop_subtasks",
        "Subtasks by queue.",
        {(name,): float(n) for name, n in queues.items()},
        "queue",
    )
    load = queue_queries.get_waiting_summary(tx)
    age_s = (tx.now - load.oldest_at).total_seconds() if load.oldest_at is not None else 0.0
    yield _gauge(
        "reviewloop_oldest_waiting_seconds", "Age of the oldest in PRIORITY or WAIT.", {(): max(0.0, age_s)}
    )
    yield _gauge(
        "reviewloop_subtasks_held_back",
        "Subtasks in WAIT whose time has not come.",
        {(): float(load.delayed)},
    )
    (pages, reviews), pace = queue_queries.count_stored(tx), queue_queries.get_pace(tx, _PACE_S)
    yield _counter("reviewloop_pages", "Pages stored so far.", {(): float(pages)})
    yield _counter("reviewloop_reviews", "Reviews stored so far, without deleted ones.", {(): float(reviews)})
    yield _gauge("reviewloop_pages_per_second", "Stored in the last 120 s.", {(): pace.pages_per_s})
    yield _gauge("reviewloop_reviews_per_second", "Stored in the last 120 s.", {(): pace.reviews_per_s})

    latest = pairs.list_recent_attempts(tx, tx.now - timedelta(seconds=_PACE_S))
    said = "Of attempts that ended in the last 120 s."
    requests, received = sum(one.requests for one in latest), sum(one.bytes for one in latest)
    yield _gauge("reviewloop_requests_per_second", said, {(): requests / _PACE_S})
    yield _gauge("reviewloop_received_bytes_per_second", said, {(): received / _PACE_S})
    failures = Counter[tuple[str, str]]()
    for group in pairs.list_recent_attempts(tx):
        if group.reason is not None:
            failures[group.site, group.reason] += group.n
    yield _gauge(
        "reviewloop_recent_failures",
        f"Attempts that failed among the newest {NEWEST_ATTEMPTS:,}.",
        failures,
        "site",
        "reason",
    )


def _measure_pairs(rows: list[PairRow]) -> Iterator[Metric]:
    by_outcome: dict[tuple[str, ...], float] = {}
    for one in rows:
        others = one.attempts - one.failed - one.silent
        for outcome, n in (("failed", one.failed), ("silent", one.silent), ("other", max(0.0, others))):
            by_outcome[one.site, one.node, outcome] = n
    yield _counter(
        "reviewloop_attempts",
        "Closed attempts; other: succeeded, or given back after a request.",
        by_outcome,
        "site",
        "node",
        "outcome",
    )
    for name, said, value in _PAIR_COUNTERS:
        values = {(one.site, one.node): float(value(one)) for one in rows}
        yield _counter(f"reviewloop_{name}", said, values, "site", "node")
    latency = {(one.site, one.node): one.rtt_ms / 1000 for one in rows if one.rtt_ms is not None}
    yield _gauge(
        "reviewloop_response_seconds", "Response time of a site, as measured.", latency, "site", "node"
    )


_PAIR_COUNTERS: Sequence[tuple[str, str, Callable[[PairRow], float]]] = (
    ("hits_offered", "Hits that attempts were responsible for.", lambda one: one.offered),
    ("pages_collected", "Pages that attempts stored.", lambda one: one.collected),
    ("active_seconds", "Seconds with a request in flight or an answer being read.", lambda one: one.active_s),
    ("wait_seconds", "Seconds waited for send permits.", lambda one: one.wait_s),
)
_NODE_GAUGES: Sequence[tuple[str, str, Callable[[NodeRow], float]]] = (
    ("slots", "Attempts a node runs at once.", lambda row: row.slots),
    ("running", "Leases it has begun.", lambda row: row.running),
    ("held", "Leases it has not begun.", lambda row: row.waiting),
    ("drained", "1: it gets nothing new.", lambda row: row.drained),
    ("attempts_per_second", "As of its last heartbeat.", lambda row: row.attempts_per_s),
)


def _measure_nodes(tx: Transaction) -> Iterator[Metric]:
    rows = nodes.list_nodes(tx)
    for name, said, value in _NODE_GAUGES:
        yield _gauge(
            f"reviewloop_node_{name}", said, {(row.name,): float(value(row)) for row in rows}, "node"
        )
    silent = {(row.name,): (tx.now - row.seen_at).total_seconds() for row in rows if row.seen_at is not None}
    yield _gauge(
        "reviewloop_node_silent_seconds", "Since its last heartbeat; none: it has ended.", silent, "node"
    )


def _measure_hosts(tx: Transaction) -> Iterator[Metric]:
    open_now = {
        (one.host, one.node, one.cause): 1.0 if one.state is BreakerState.OPEN else 0.5
        for one in hosts.list_rests(tx)
    }
    yield _gauge(
        "reviewloop_breaker", "1: open, 0.5: half-open; none: closed.", open_now, "host", "node", "cause"
    )


def _measure_scheduler(kept: Measured | None, now: datetime) -> Iterator[Metric]:
    """Yield the measurements of the scheduler's last run; nothing before its first run.

    Args:
        kept: stored measurements; `None` before the first run.
    """
    if kept is None:
        return
    age_s = max(0.0, (now - kept.at).total_seconds())
    yield _gauge(
        "reviewloop_scheduler_silent_seconds", "Since a scheduler kept its measurements.", {(): age_s}
    )
    times = SummaryMetricFamily(
        "reviewloop_sweep_seconds", "How long sweeps and turns of the loop take.", labels=("sweep",)
    )
    for name, one in kept.sweeps.items():
        times.add_metric((name,), one.count, one.seconds)
    yield times
    yield _gauge(
        "reviewloop_sweep_longest_seconds",
        "The longest of the last measurement's 15 s.",
        {(name,): one.longest_s for name, one in kept.sweeps.items()},
        "sweep",
    )
    hosts_now = kept.grants.items()
    yield _gauge(
        "reviewloop_host_pace",
        "Share of its limit that a host grants; none: all of it.",
        {(host,): one.share for host, one in hosts_now},
        "host",
    )
    yield _gauge(
        "reviewloop_permits_ahead_seconds",
        "How far ahead the permits of a host are reserved.",
        {(host,): one.next_s for host, one in hosts_now},
        "host",
    )
    of_addresses = [(host, address, own) for host, one in hosts_now for address, own in one.addresses.items()]
    for name, said, values in (
        (
            "pace",
            "Share of its limit that a host grants an address.",
            {of[:2]: of[2].share for of in of_addresses},
        ),
        (
            "rest_seconds",
            "How long an address gets no permit.",
            {of[:2]: of[2].next_s for of in of_addresses},
        ),
    ):
        yield _gauge(f"reviewloop_address_{name}", said, values, "host", "address")
