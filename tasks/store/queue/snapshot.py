"""The facts of a scheduling pass: waiting subtasks, nodes, hosts, failed and sleeping subtasks, and if there is work.

`todo` is one statement that only looks into indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import NamedTuple

from tasks.domain.breaker import BreakerState
from tasks.domain.failures import FailureReason
from tasks.domain.grants import Grants
from tasks.domain.states import State
from tasks.domain.views import SubtaskView
from tasks.scheduling.admission import Entrant
from tasks.scheduling.capacity import Crawled
from tasks.scheduling.ready_queue import Backlog
from tasks.scheduling.rebalancing import BufferRule, NodeLoad, PrefetchedLease, node_load
from tasks.store.queue import hosts, nodes
from tasks.store.queue.nodes import NodeRow
from tasks.store.sql.transaction import Transaction

UNDER_WAY = timedelta(seconds=1.5)
"""Age of an attempt that is past its result pages, as a rule."""

HostsOf = Callable[[str], tuple[str, str]]
"""(engine's host, site's host) of a site."""


class _ReadySubtask(NamedTuple):
    """A subtask that waits, or whose lease (`node`, `attempt_id`, `allocated_at`) was not begun."""

    id: int
    site: str
    kind: str
    left: int
    priority: int
    failed_on: tuple[str, ...]
    assigned: str | None
    quota: int | None
    reads_results: bool
    node: str | None
    attempt_id: int | None
    allocated_at: datetime | None


def list_waiting(tx: Transaction, limit: int, hosts_of: HostsOf) -> list[SubtaskView]:
    """Return subtasks in WAIT that may be allocated now, in queue order."""
    rows = tx.records(_ReadySubtask, _WAITING, now=tx.now, most=limit)
    return [view for view, _ in _views(rows, hosts_of)]


def list_unstarted(tx: Transaction, hosts_of: HostsOf) -> list[PrefetchedLease]:
    """Return leases that no node has begun, of every node."""
    rows = tx.records(_ReadySubtask, _UNSTARTED)
    return [
        PrefetchedLease(view, row.node, row.attempt_id, (tx.now - row.allocated_at).total_seconds())
        for view, row in _views(rows, hosts_of)
        if row.node is not None and row.attempt_id is not None and row.allocated_at is not None
    ]


def _views(rows: Sequence[_ReadySubtask], hosts_of: HostsOf) -> Iterator[tuple[SubtaskView, _ReadySubtask]]:
    """Yield each row as a strategy sees it, with the row. With a result page to read it will ask its engine's host."""
    by_site = cache(hosts_of)
    for row in rows:
        asked = by_site(row.site)
        yield (
            SubtaskView(
                id=row.id,
                site=row.site,
                kind=row.kind,
                hosts=asked if row.reads_results else asked[1:],
                left=row.left,
                priority=row.priority,
                failed_on=row.failed_on,
                assigned=row.assigned,
                quota=row.quota,
            ),
            row,
        )


_READS_RESULTS = """
    EXISTS (SELECT 1 FROM targets WHERE subtask_id = subtasks.id AND targets.state = 'todo' AND targets.kind = 'result')
"""
_SUBTASK = f"""
    subtasks.id, subtasks.site, subtasks.kind, subtasks."left", subtasks.priority, subtasks.failed_on,
        subtasks.assigned_node AS assigned, subtasks.assigned_quota AS quota, {_READS_RESULTS} AS reads_results,
        subtasks.lease_node AS node, subtasks.attempt_id
"""
_WAITING = f"""
    SELECT {_SUBTASK}, NULL AS allocated_at FROM subtasks
    WHERE state = '{State.WAIT}' AND (not_before IS NULL OR not_before <= :now) ORDER BY priority DESC, id LIMIT :most
"""
_UNSTARTED = f"""
    SELECT {_SUBTASK}, attempts.allocated_at FROM subtasks JOIN attempts ON attempts.id = subtasks.attempt_id
    WHERE subtasks.state = '{State.CRAWL}' AND NOT subtasks.lease_started
"""


def load_of(row: NodeRow, now: datetime, rule: BufferRule) -> NodeLoad:
    """Return the load of a node, by its leases and its last heartbeat."""
    return node_load(
        row.name,
        frozenset(row.kinds),
        row.slots,
        running=row.running,
        waiting=row.waiting,
        idle=row.idle,
        attempts_per_s=row.attempts_per_s,
        waited_s=(now - row.waits_since).total_seconds() if row.waits_since is not None else 0.0,
        rule=rule,
    )


def list_node_loads(tx: Transaction, rule: BufferRule) -> list[NodeLoad]:
    """Return the nodes that are alive and not drained."""
    since = tx.now - timedelta(seconds=rule.silent_after_s)
    alive = (row for row in nodes.list_nodes(tx) if row.seen_at is not None and row.seen_at > since)
    return [load_of(row, tx.now, rule) for row in alive if not row.drained]


class _Running(NamedTuple):
    """Attempts of a site that a node has; `searches`: they were given result pages."""

    site: str
    node: str
    searches: bool
    attempts: int
    under_way: int


def load_crawled(tx: Transaction, sites: Collection[str], grants: Grants) -> Crawled:
    """Return the work under way and the rests of hosts.

    Attempts that wait for the database send no requests (`nodes.asking_shares`).

    Args:
        sites: that are about to be crawled.
        grants: what hosts grant now.
    """
    resting: dict[str, dict[str, float]] = {}
    unanswered: dict[str, list[str]] = {}
    probing: dict[str, list[str]] = {}
    for rest in hosts.list_rests(tx):
        if rest.state is BreakerState.HALF_OPEN:
            probing.setdefault(rest.host, []).append(rest.node)
            continue
        resting.setdefault(rest.host, {})[rest.node] = (rest.until - tx.now).total_seconds()
        if rest.unanswered:
            unanswered.setdefault(rest.host, []).append(rest.node)
    return Crawled(
        running=tx.records(_Running, _CRAWLED, before=tx.now - UNDER_WAY),
        asking=nodes.asking_shares(tx),
        resting=resting,
        unanswered=unanswered,
        probing=probing,
        sites=sites,
        grants=grants,
        addresses=nodes.permit_addresses(tx),
    )


_CRAWLED = f"""
    SELECT site, node, searches, count(*) AS attempts, count(CASE WHEN under_way THEN 1 END) AS under_way
    FROM (
        SELECT subtasks.site, subtasks.lease_node AS node, {_READS_RESULTS} OR attempts.found IS NOT NULL AS searches,
            subtasks.lease_started AND subtasks.changed_at <= :before AS under_way
        FROM subtasks JOIN attempts ON attempts.id = subtasks.attempt_id WHERE subtasks.state = '{State.CRAWL}'
    ) running GROUP BY site, node, searches
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedView:
    """A subtask in FAILED."""

    id: int
    site: str
    reason: FailureReason
    recalls: int
    failed_on: tuple[str, ...]
    idle_releases: int

    @property
    def node(self) -> str:
        """The node that failed it last; empty if there is none."""
        return self.failed_on[-1] if self.failed_on else ""


def lock_failed(tx: Transaction, limit: int) -> list[FailedView]:
    """Return subtasks in FAILED, the oldest first, locked; what another transaction has locked is passed over."""
    return tx.records(FailedView, _FAILED, most=limit)


_FAILED = f"""
    SELECT id, site, reason, recalls, failed_on, idle_releases FROM subtasks
    WHERE state = '{State.FAILED}' ORDER BY id LIMIT :most FOR UPDATE SKIP LOCKED
"""


# --- PRIORITY by site ---------------------------------------------------------------------------------------
#
# All use the index ``ix_subtasks_by_site`` (state, site, priority descending, id, left), so each but `pending` costs
# the same however much is queued. Neither database skips from one value of an index to the next by itself, so `heads`
# walks: the first site, the first one behind it, and so on.


def list_heads(tx: Transaction) -> dict[str, int]:
    """Return the highest priority of each site with subtasks in PRIORITY."""
    return dict(tx.rows(_HEADS))


_QUEUED = f"state = '{State.PRIORITY}'"
_HEADS = f"""
    WITH RECURSIVE walk(site) AS (
        SELECT min(site) FROM subtasks WHERE {_QUEUED}
        UNION ALL
        SELECT (SELECT min(site) FROM subtasks WHERE {_QUEUED} AND subtasks.site > walk.site)
        FROM walk WHERE walk.site IS NOT NULL
    )
    SELECT site, (SELECT max(priority) FROM subtasks WHERE {_QUEUED} AND subtasks.site = walk.site)
    FROM walk WHERE site IS NOT NULL
"""


def count_waiting(tx: Transaction) -> dict[tuple[str, int], int]:
    """Return how many subtasks are in WAIT, by (site, priority)."""
    return {(site, priority): n for site, priority, n in tx.rows(_WAITING_BY_SITE)}


_WAITING_BY_SITE = f"""
    SELECT site, priority, count(*) FROM subtasks WHERE state = '{State.WAIT}' GROUP BY site, priority
"""


def list_entrants(tx: Transaction, wanted: Mapping[str, int]) -> list[Entrant]:
    """Return the first subtasks of each site in PRIORITY: higher priority first, then first in, first out.

    Args:
        wanted: maximum number of subtasks, by site.
    """
    first = f"""
        SELECT id, subtasks.site, priority FROM subtasks
        WHERE {_QUEUED} AND subtasks.site = {{}} ORDER BY priority DESC, id LIMIT {{}}
    """
    if tx.is_sqlite:  # it has no LATERAL, and no round trips either
        each = first.format(":site", ":most")
        return [one for site, n in wanted.items() for one in tx.records(Entrant, each, site=site, most=n)]
    asked = "jsonb_to_recordset(CAST(:wanted AS jsonb)) AS asked(site text, n integer)"
    all_sites = f"SELECT first.* FROM {asked}, LATERAL ({first.format('asked.site', 'asked.n')}) first"
    return tx.records(Entrant, all_sites, wanted=[{"site": site, "n": n} for site, n in wanted.items()])


def count_pending(tx: Transaction) -> dict[str, Backlog]:
    """Return the subtasks in PRIORITY by site, and their hits left; it reads all of the index (docs/scaling.md)."""
    return {site: Backlog(n, left) for site, n, left in tx.rows(_PENDING)}


_PENDING = f"""
    SELECT site, count(*) AS queued, CAST(sum("left") AS BIGINT) FROM subtasks WHERE {_QUEUED} GROUP BY site
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """The work of a turn, now.

    Attributes:
        last_event: number of the newest event, 0 if there is none. It grows with every transition.
        under_way: attempts past their result pages, as a rule (`UNDER_WAY`).
        overdue, failed, sleeping, queued: a lease has run out; something is in FAILED, in SLEEP, in PRIORITY.
        due: something in WAIT may be given to a node.
        next_at: when the next subtask in WAIT may be given, or the next rest of a node at a host ends.
    """

    last_event: int
    under_way: int
    overdue: bool
    failed: bool
    sleeping: bool
    queued: bool
    due: bool
    next_at: datetime | None


def todo(tx: Transaction) -> Todo:
    """Return the work there is."""
    (found,) = tx.records(Todo, _TODO, now=tx.now, before=tx.now - UNDER_WAY)
    return found


def _any_in(state: State, condition: str = "") -> str:
    """Return a condition: the queue holds a row. It reads the first row by the queue's index.

    PostgreSQL turns EXISTS into a scan of the table if it expects many rows in the queue. The scan stops at the first
    row, which may stand behind all that is done.
    """
    first = f"SELECT id FROM subtasks WHERE state = '{state}'{condition} ORDER BY priority DESC, id LIMIT 1"
    return f"({first}) IS NOT NULL"


_TODO = f"""
    SELECT (SELECT coalesce(max(id), 0) FROM events) AS last_event,
        (SELECT count(*) FROM subtasks WHERE state = '{State.CRAWL}' AND lease_started AND changed_at <= :before)
            AS under_way,
        coalesce((SELECT min(lease_deadline) FROM subtasks WHERE state = '{State.CRAWL}') <= :now, false) AS overdue,
        {_any_in(State.FAILED)} AS failed, {_any_in(State.SLEEP)} AS sleeping, {_any_in(State.PRIORITY)} AS queued,
        {_any_in(State.WAIT, " AND (not_before IS NULL OR not_before <= :now)")} AS due,
        (SELECT min(at) FROM (
            SELECT min(not_before) AS at FROM subtasks WHERE state = '{State.WAIT}' AND not_before > :now
            UNION ALL SELECT min(until) FROM host_rests WHERE until > :now
        ) next_times) AS next_at
"""


def all_settled(tx: Transaction) -> bool:
    """Return True if every product is planned, every subtask DONE, CANCELLED or MANUAL, and every link judged."""
    return not tx.value(_UNSETTLED)


_UNSETTLED = f"""
    SELECT EXISTS (SELECT 1 FROM virtual_tasks WHERE planned_at IS NULL)
        OR EXISTS (SELECT 1 FROM page_products WHERE verdict = 'unjudged')
        OR {" OR ".join(_any_in(state) for state in State if not state.settled)}
"""
