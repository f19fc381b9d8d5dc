"""How the pairs (site, node) did: their sums, their newest attempts, the last decision about one. Reads only.

Queries about attempts are bounded: they look at the newest ones, however many there are.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from tasks.domain.pair_stats import SUMS, PairStats
from tasks.domain.states import Transition
from tasks.store.queue.attempts import ATTEMPT_COUNTS, ATTEMPT_SUMS
from tasks.store.sql.transaction import Transaction

NEWEST_ATTEMPTS = 20_000
_LAST_DECISIONS = 1000
"""Number of newest decisions that count; older ones don't show the present value of a permit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRow(PairStats):
    """Sums of the closed attempts of a (site, node).

    Attributes:
        wait_s: seconds waited for rate limits.
        requests: sent by these attempts, those for result pages and those that failed too; of a pair also those of
            attempts given back, which count as no attempt.
        rtt_ms: response time of the site (`tasks.domain.pair_stats.RoundTrip`); `None`: not measured, or the
            row belongs to one product.
        product: the name of the row's product; empty for all products.
    """

    site: str
    node: str
    wait_s: float
    requests: int
    rtt_ms: float | None = None
    product: str = ""

    @property
    def requests_per_page(self) -> float | None:
        """Requests per stored page; `None` without a page."""
        return self.requests / self.collected if self.collected else None


def pairs(tx: Transaction) -> list[PairRow]:
    """Return every (site, node) that has closed attempts, by site, then node."""
    return tx.records(PairRow, _PAIRS)


def pairs_by_product(tx: Transaction, site: str | None, node: str | None) -> list[PairRow]:
    """Return every (product, site, node) that has closed attempts, summed from these, in this order.

    Args:
        site, node: only this one; `None`: all.
    """
    return tx.records(PairRow, _PAIRS_BY_PRODUCT, site=site, node=node)


_PAIRS = f"SELECT site, node, wait_s, requests, rtt_ms, {', '.join(SUMS)} FROM pair_stats ORDER BY site, node"
_PAIRS_BY_PRODUCT = f"""
    SELECT p.name AS product, a.site, a.node, sum(a.wait_s) AS wait_s, sum(a.requests) AS requests, {ATTEMPT_SUMS}
    FROM attempts a JOIN products p ON p.id = a.product_id
    WHERE a.outcome IS NOT NULL AND (:site IS NULL OR a.site = :site) AND (:node IS NULL OR a.node = :node)
    GROUP BY p.id, p.name, a.site, a.node
    HAVING count(CASE WHEN {ATTEMPT_COUNTS} THEN 1 END) > 0
    ORDER BY p.id, a.site, a.node
"""


@dataclass(slots=True, kw_only=True)
class AttemptSums:
    """Sums over attempts.

    Attributes:
        bytes: of bodies, decompressed.
        collected: pages stored.
        active_s, wait_s: seconds of work, and of waiting for send permits, summed over all attempts.
        outcomes: attempts by outcome; those that run count as "open".
        reasons: attempts that failed or were given back, by reason.
        errors: of a run, requests that gave no page, by class.
        statuses: of a run, requests by status, or by error if there was no response.
    """

    requests: int = 0
    bytes: int = 0
    collected: int = 0
    active_s: float = 0.0
    wait_s: float = 0.0
    outcomes: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)

    @property
    def requests_per_page(self) -> float | None:
        """Requests per stored page; `None` without a page."""
        return self.requests / self.collected if self.collected else None

    def add(self, other: AttemptSums) -> None:
        """Add the sums of further attempts."""
        for name in ("requests", "bytes", "collected", "active_s", "wait_s"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("outcomes", "reasons", "errors", "statuses"):
            added = Counter(getattr(self, name)) + Counter(getattr(other, name))
            setattr(self, name, dict(added.most_common()))


class _AttemptGroup(NamedTuple):
    """Attempts of a pair with one outcome and one reason."""

    site: str
    node: str
    outcome: str | None
    reason: str | None
    n: int
    requests: int
    bytes: int
    collected: int
    active_s: float
    wait_s: float

    def sums(self) -> AttemptSums:
        return AttemptSums(
            requests=self.requests,
            bytes=self.bytes,
            collected=self.collected,
            active_s=self.active_s,
            wait_s=self.wait_s,
            outcomes={self.outcome or "open": self.n},
            reasons={self.reason: self.n} if self.reason else {},
        )


class SiteHits(NamedTuple):
    """The hits of a site: those that attempts offered and collected lately, and those before."""

    site: str
    offered: int
    collected: int
    usual_offered: int
    usual_collected: int


def recent_hits(tx: Transaction, since: datetime) -> list[SiteHits]:
    """Return the hits of each site that had an attempt that ended since then, among the newest `NEWEST_ATTEMPTS`."""
    return tx.records(SiteHits, _RECENT_HITS, after=newest_attempt(tx) - NEWEST_ATTEMPTS, since=since)


_RECENT_HITS = """
    SELECT site, offered, collected,
        CASE WHEN all_offered > offered THEN all_offered - offered ELSE 0 END AS usual_offered,
        CASE WHEN all_collected > collected THEN all_collected - collected ELSE 0 END AS usual_collected
    FROM (
        SELECT site, sum(offered) AS offered, sum(collected) AS collected FROM attempts
        WHERE id > :after AND ended_at > :since AND outcome IN ('succeeded', 'failed', 'silent') GROUP BY site
    ) lately LEFT JOIN (
        SELECT site AS pair_site, sum(offered) AS all_offered, sum(collected) AS all_collected
        FROM pair_stats GROUP BY site
    ) every ON pair_site = site
"""


class _Requests(NamedTuple):
    errors: Mapping[str, int]
    statuses: Mapping[str, int]


def recent_attempts(tx: Transaction) -> dict[tuple[str, str], AttemptSums]:
    """Return the sums of each (site, node) over those of the newest `NEWEST_ATTEMPTS` attempts that are closed."""
    found: dict[tuple[str, str], AttemptSums] = {}
    for group in tx.records(_AttemptGroup, _RECENT, newest=NEWEST_ATTEMPTS):
        found.setdefault((group.site, group.node), AttemptSums()).add(group.sums())
    return found


def run_attempts(tx: Transaction, after: int) -> AttemptSums:
    """Return the sums of the attempts after a number; open ones count with their last report."""
    found = AttemptSums()
    for group in tx.records(_AttemptGroup, _OF_RUN, after=after):
        found.add(group.sums())
    for one in tx.records(_Requests, "SELECT errors, statuses FROM attempts WHERE id > :after", after=after):
        found.errors = dict(Counter(found.errors) + Counter(one.errors))
        found.statuses = dict(Counter(found.statuses) + Counter(one.statuses))
    found.errors = dict(Counter(found.errors).most_common())
    found.statuses = dict(sorted(found.statuses.items()))
    return found


def newest_attempt(tx: Transaction) -> int:
    """Return the highest number of an attempt; 0: there is none."""
    return tx.value("SELECT max(id) FROM attempts") or 0


_SUMS_OF_GROUP = """
    site, node, outcome, reason, count(*) AS n, sum(requests) AS requests, sum(bytes) AS bytes,
        sum(collected) AS collected, sum(active_s) AS active_s, sum(wait_s) AS wait_s
"""
# A subquery, since SQLite might else choose another index and go through the whole table by it.
_RECENT = f"""
    SELECT {_SUMS_OF_GROUP} FROM (SELECT * FROM attempts ORDER BY id DESC LIMIT :newest) newest
    WHERE outcome IS NOT NULL GROUP BY site, node, outcome, reason
"""
_OF_RUN = f"SELECT {_SUMS_OF_GROUP} FROM attempts WHERE id > :after GROUP BY site, node, outcome, reason"


class Traffic(NamedTuple):
    """Sums over the attempts that ended in the last seconds."""

    attempts: int
    requests: int
    bytes: int


def recent_traffic(tx: Transaction, seconds: float) -> Traffic:
    """Return the sums over the newest `NEWEST_ATTEMPTS` attempts that ended in the last seconds."""
    since = tx.now - timedelta(seconds=seconds)
    (found,) = tx.records(Traffic, _TRAFFIC, after=newest_attempt(tx) - NEWEST_ATTEMPTS, since=since)
    return found


_TRAFFIC = """
    SELECT count(*) AS attempts, coalesce(sum(requests), 0) AS requests, coalesce(sum(bytes), 0) AS bytes
    FROM attempts WHERE id > :after AND ended_at > :since
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairAttempt:
    """A closed attempt of a pair."""

    id: int
    subtask_id: int
    product: str
    no: int
    allocated_at: datetime
    ended_at: datetime
    outcome: str
    reason: str | None
    offered: int
    tried: int
    collected: int
    active_s: float
    wait_s: float
    lost_s: float
    requests: int
    quota: int
    budget_s: float
    errors: Mapping[str, int]


def attempts_of_pair(tx: Transaction, site: str, node: str, most: int) -> list[PairAttempt]:
    """Return the newest closed attempts of a (site, node), the oldest of them first."""
    return tx.records(PairAttempt, _OF_PAIR, site=site, node=node, most=most)[::-1]


_OF_PAIR = """
    SELECT a.id, a.subtask_id, p.name AS product, a.no, a.allocated_at, a.ended_at, a.outcome, a.reason, a.offered,
        a.tried, a.collected, a.active_s, a.wait_s, a.lost_s, a.requests, a.quota, a.budget_s, a.errors
    FROM attempts a JOIN products p ON p.id = a.product_id
    WHERE a.site = :site AND a.node = :node AND a.outcome IS NOT NULL AND a.ended_at IS NOT NULL
    ORDER BY a.id DESC LIMIT :most
"""


@dataclass(frozen=True, slots=True)
class Decision:
    """The last decision that gave a node work of a site.

    Attributes:
        detail: the reasons for it, as the event log has them (`reviewloop explain`).
    """

    subtask_id: int
    at: datetime
    detail: Mapping[str, Any] | None


def last_decision(tx: Transaction, site: str, node: str) -> Decision | None:
    """Return the last decision that gave a node work of a site; `None` if there is none."""
    found = tx.record(Decision, _DECISION, site=site, node=node)
    return found if found is not None and found.detail else None


_DECISION = f"""
    SELECT e.subtask_id, e.at, e.detail
    FROM (SELECT id, subtask_id FROM attempts WHERE site = :site AND node = :node ORDER BY id DESC LIMIT 1) a
    JOIN events e ON e.subtask_id = a.subtask_id AND e.attempt_id = a.id AND e.transition = '{Transition.ALLOCATE}'
    ORDER BY e.id DESC LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class LastPrices:
    """Shadow prices of the plans that the last decisions followed (`tasks.scheduling.decision.Prices`).

    Attributes:
        permit: by site.
        slot: by node.
    """

    permit: Mapping[str, float]
    slot: Mapping[str, float]


class _Priced(NamedTuple):
    site: str
    node: str
    prices: Mapping[str, float] | None


def last_prices(tx: Transaction) -> LastPrices:
    """Return the prices by the last decision about each site, and each node, among the last `_LAST_DECISIONS`."""
    permit: dict[str, float] = {}
    slot: dict[str, float] = {}
    for one in tx.records(_Priced, _LAST_PRICES, most=_LAST_DECISIONS):
        if one.prices is not None:
            permit.setdefault(one.site, one.prices["permit"])
            slot.setdefault(one.node, one.prices["slot"])
    return LastPrices(permit, slot)


_LAST_PRICES = f"""
    SELECT s.site, e.node, e.detail -> 'prices' AS prices FROM events e JOIN subtasks s ON s.id = e.subtask_id
    WHERE e.transition = '{Transition.ALLOCATE}' ORDER BY e.id DESC LIMIT :most
"""


class RecordedRun(NamedTuple):
    """An attempt that tried pages, with its node, its number of URLs and its active time in seconds."""

    attempt_id: int
    node: str
    urls: int
    seconds: float


def list_runs(tx: Transaction, nodes: Collection[str], newest: int = sys.maxsize) -> list[RecordedRun]:
    """Return attempts of these nodes that succeeded, tried pages and took time, the oldest first.

    Args:
        newest: maximum number of attempts, the newest ones.
    """
    return tx.records(RecordedRun, _RECORDED, nodes=list(nodes), newest=newest)[::-1]


_RECORDED = """
    SELECT id AS attempt_id, node, tried AS urls, active_s AS seconds FROM attempts
    WHERE outcome = 'succeeded' AND tried > 0 AND active_s > 0 AND node IN :nodes
    ORDER BY id DESC LIMIT :newest
"""


class _Machine(NamedTuple):
    name: str
    parameters: Mapping[str, float | None] | None


def list_node_parameters(tx: Transaction) -> dict[str, Mapping[str, float | None]]:
    """Return the parameters of each node's machine, if the node reported them."""
    found = tx.records(_Machine, "SELECT name, parameters FROM nodes ORDER BY name")
    return {one.name: one.parameters for one in found if one.parameters}
