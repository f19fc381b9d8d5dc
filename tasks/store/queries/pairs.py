"""How the pairs (site, node) did: their sums, their newest attempts, the last decisions about them. Reads only.

Queries about attempts are bounded: they look at the newest ones, however many there are.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, NamedTuple, TypeVar

from tasks.domain.pair_stats import SUMS, PairStats
from tasks.domain.reasons import add_sentences
from tasks.domain.states import Transition
from tasks.store.queue.attempts import ATTEMPT_COUNTS, ATTEMPT_SUMS, EVER
from tasks.store.queue.nodes import list_nodes
from tasks.store.sql.transaction import Transaction

K = TypeVar("K")

NEWEST_ATTEMPTS = 20_000
_LAST_DECISIONS = 1000
"""Number of newest decisions that count; older ones don't show the present value of a permit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRow(PairStats):
    """Sums of the closed attempts of a (site, node), and the rates made of them.

    Attributes:
        wait_s: seconds waited for rate limits.
        requests: sent by these attempts, those for result pages and those that failed too; of a pair also those of
            attempts given back, which count as no attempt.
        rtt_ms: response time of the site (`tasks.domain.pair_stats.RoundTrip`); `None`: not measured, or the
            row belongs to one product.
        product: the name of the row's product; empty for all products.
        completion, efficiency_s: as of `PairStats`.
        requests_per_page: requests per stored page; `None` without a page.
    """

    site: str
    node: str
    wait_s: float = 0.0
    requests: int = 0
    rtt_ms: float | None = None
    product: str = ""
    completion: float | None = None
    efficiency_s: float | None = None
    requests_per_page: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "completion", super(PairRow, self).completion)
        object.__setattr__(self, "efficiency_s", super(PairRow, self).efficiency_s)
        per_page = self.requests / self.collected if self.collected else None
        object.__setattr__(self, "requests_per_page", per_page)


def list_pairs(tx: Transaction) -> list[PairRow]:
    """Return every (site, node) that has closed attempts, by site, then node."""
    return tx.records(PairRow, _PAIRS)


def list_product_pairs(tx: Transaction, site: str | None, node: str | None) -> list[PairRow]:
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


class AttemptGroup(NamedTuple):
    """Attempts of a (site, node) with one outcome and one reason, and their sums.

    Attributes:
        outcome: "open" if they run.
        reason: why they failed or were given back.
        n: number of attempts.
        bytes: of bodies, decompressed.
        collected: pages stored.
        active_s, wait_s: seconds of work, and of waiting for send permits.
    """

    site: str
    node: str
    outcome: str
    reason: str | None
    n: int
    requests: int
    bytes: int
    collected: int
    active_s: float
    wait_s: float


@dataclass(slots=True, kw_only=True)
class AttemptSums:
    """Sums over groups of attempts, with the fields of `AttemptGroup`.

    Attributes:
        outcomes: attempts by outcome.
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

    def add(self, group: AttemptGroup) -> None:
        """Add a group of attempts."""
        for name in ("requests", "bytes", "collected", "active_s", "wait_s"):
            setattr(self, name, getattr(self, name) + getattr(group, name))
        for counts, key in ((self.outcomes, group.outcome), (self.reasons, group.reason)):
            if key is not None:
                counts[key] = counts.get(key, 0) + group.n


def sums_by(groups: Iterable[AttemptGroup], key: Callable[[AttemptGroup], K]) -> dict[K, AttemptSums]:
    """Return the sums of the groups that share a key."""
    found: dict[K, AttemptSums] = {}
    for one in groups:
        found.setdefault(key(one), AttemptSums()).add(one)
    return found


def list_recent_attempts(tx: Transaction, since: datetime = EVER) -> list[AttemptGroup]:
    """Return those of the newest `NEWEST_ATTEMPTS` attempts that ended after a time, the largest group first."""
    return tx.records(AttemptGroup, _RECENT, newest=NEWEST_ATTEMPTS, since=since)


def get_run_sums(tx: Transaction, after: int) -> AttemptSums:
    """Return the sums of the attempts after a number; open ones count with their last report."""
    found = sums_by(tx.records(AttemptGroup, _OF_RUN, after=after), lambda _: "").get("", AttemptSums())
    errors, statuses = Counter[str](), Counter[str]()
    for one in tx.records(
        AttemptSums, "SELECT errors, statuses FROM attempts WHERE id > :after", after=after
    ):
        errors.update(one.errors)
        statuses.update(one.statuses)
    found.errors, found.statuses = dict(errors.most_common()), dict(sorted(statuses.items()))
    return found


_GROUPS = """
    site, node, coalesce(outcome, 'open') AS outcome, reason, count(*) AS n, sum(requests) AS requests,
        sum(bytes) AS bytes, sum(collected) AS collected, sum(active_s) AS active_s, sum(wait_s) AS wait_s
"""
_BY_END = "GROUP BY site, node, outcome, reason ORDER BY n DESC"
# A subquery, since SQLite might else choose another index and go through the whole table by it.
_RECENT = f"""
    SELECT {_GROUPS} FROM (SELECT * FROM attempts ORDER BY id DESC LIMIT :newest) newest
    WHERE ended_at > :since {_BY_END}
"""
_OF_RUN = f"SELECT {_GROUPS} FROM attempts WHERE id > :after {_BY_END}"


def list_recent_hits(tx: Transaction, since: datetime) -> list[tuple[str, int, int, int, int]]:
    """Return each site that had an attempt that ended since then, among the newest `NEWEST_ATTEMPTS`.

    Returns:
        (site, hits offered since then, hits collected since then, hits offered before, hits collected before).
    """
    return tx.rows(_RECENT_HITS, newest=NEWEST_ATTEMPTS, since=since)


_RECENT_HITS = """
    SELECT lately.site, lately.offered, lately.collected,
        every.offered - lately.offered, every.collected - lately.collected
    FROM (
        SELECT site, sum(offered) AS offered, sum(collected) AS collected
        FROM (SELECT * FROM attempts ORDER BY id DESC LIMIT :newest) newest
        WHERE ended_at > :since AND outcome IN ('succeeded', 'failed', 'silent') GROUP BY site
    ) lately
    JOIN (SELECT site, sum(offered) AS offered, sum(collected) AS collected FROM pair_stats GROUP BY site) every
        ON every.site = lately.site
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

    @property
    def end(self) -> str:
        """The reason of its failure, else its outcome."""
        return self.reason or self.outcome


def list_pair_attempts(tx: Transaction, site: str, node: str, most: int) -> list[PairAttempt]:
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
    detail: Annotated[Mapping[str, Any], add_sentences]


def get_last_decision(tx: Transaction, site: str, node: str) -> Decision | None:
    """Return the last decision that gave a node work of a site; `None` if there is none with its reasons."""
    return tx.record(Decision, _DECISION, site=site, node=node)


_DECISION = f"""
    SELECT e.subtask_id, e.at, e.detail
    FROM (SELECT id, subtask_id FROM attempts WHERE site = :site AND node = :node ORDER BY id DESC LIMIT 1) a
    JOIN events e ON e.subtask_id = a.subtask_id AND e.attempt_id = a.id AND e.transition = '{Transition.ALLOCATE}'
    WHERE e.detail IS NOT NULL
"""


def list_last_prices(tx: Transaction) -> list[tuple[str, str, float | None, float | None]]:
    """Return shadow prices of the plans that the last `_LAST_DECISIONS` decisions followed, the oldest first.

    Returns:
        (site, node, price of a permit, price of a slot); prices as of `tasks.scheduling.decision.Prices`, `None` if
        there was no plan.
    """
    return tx.rows(_LAST_PRICES, most=_LAST_DECISIONS)[::-1]


_LAST_PRICES = f"""
    SELECT s.site, e.node, CAST(e.detail -> 'prices' ->> 'permit' AS double precision),
        CAST(e.detail -> 'prices' ->> 'slot' AS double precision)
    FROM events e JOIN subtasks s ON s.id = e.subtask_id
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


def list_node_parameters(tx: Transaction) -> dict[str, Mapping[str, float | None]]:
    """Return the parameters of each node's machine, if the node reported them."""
    return {row.name: row.parameters for row in list_nodes(tx) if row.parameters}
