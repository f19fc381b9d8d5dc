"""The facts of a scheduling pass: waiting subtasks, nodes, hosts, failed and sleeping subtasks, and if there is work.

`todo` is one statement that only looks into indexes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    ColumnElement,
    Select,
    bindparam,
    exists,
    false,
    func,
    or_,
    select,
)

from tasks.domain.failures import FailureReason
from tasks.domain.grants import Grants
from tasks.domain.states import State
from tasks.domain.views import HostView, NodeView, SubtaskView
from tasks.scheduling import capacity
from tasks.scheduling.admission import Entrant
from tasks.scheduling.ready_queue import Backlog
from tasks.scheduling.rebalancing import HORIZON_S, NodeLoad, PrefetchedLease, start_rate
from tasks.store.queue import hosts as host_store
from tasks.store.queue import nodes as node_store
from tasks.store.queue.leases import HITS_UNREAD
from tasks.store.queue.nodes import NodeRow
from tasks.store.sql.database import columns_of
from tasks.store.sql.prepared import Prepared
from tasks.store.sql.tables import UtcDateTime, attempts, events, host_rests, subtasks, targets, virtual_tasks
from tasks.store.sql.transaction import Transaction

if TYPE_CHECKING:
    from splitter.catalog.model import Limits

UNDER_WAY = timedelta(seconds=1.5)
"""An attempt given so long ago is past its result pages, as a rule."""

HostsOf = Callable[[str], tuple[str, str]]
"""(engine's host, site's host) of a site."""


@dataclass(frozen=True, slots=True)
class BufferRule:
    """How many leases a node may prefetch: have beyond its slots.

    As many as it is expected to begin within `HORIZON_S` (`tasks.scheduling.rebalancing`), but no more than
    `slots_over` times its slots, so that the newest knowledge decides about the rest. Where attempts are short, at
    least as many as it begins within `refill_s`. Attempts that only wait hold no slot: for each of them it gets another
    lease, at most `slots_over` times its slots.

    Attributes:
        refill_s: longest time until a free slot gets its next lease: that of the sweep, where no notification came.
        slots_over: most prefetched leases of a slot.
        silent_after_s: a node without a heartbeat for so long is silent: it gets nothing.
    """

    refill_s: float = 5.0
    slots_over: int = 4
    silent_after_s: float = 60.0

    def most(self, slots: int, idle: int, per_s: float) -> int:
        """How many leases a node may have, begun or not.

        Args:
            slots: attempts it runs at once.
            idle: of those it has begun, how many only wait.
            per_s: attempts it is expected to begin per second.
        """
        bound = self.slots_over * slots
        # Rounding error: a fraction below this is not another lease.
        within, refill = (math.ceil(per_s * s - 1e-9) for s in (HORIZON_S, self.refill_s))
        return slots + min(within, max(bound, refill)) + min(idle, bound)


def waiting(conn: Transaction, now: datetime, limit: int, hosts_of: HostsOf) -> list[SubtaskView]:
    """Subtasks in WAIT that may be allocated now, in queue order."""
    rows = _WAITING.rows(conn, {"now": now, "most": limit})
    by_site = cache(hosts_of)
    return [_subtask(r, by_site) for r in rows]


_READS_RESULTS = (
    exists()
    .where(targets.c.subtask_id == subtasks.c.id, targets.c.state == "todo", targets.c.kind == "result")
    .label("reads_results")
)
"""A result page of it is still to be read: it will ask its engine's host."""
_SUBTASK = (
    *(subtasks.c[name] for name in ("id", "site", "kind", "left", "priority", "failed_on")),
    *(subtasks.c.assigned_node, subtasks.c.assigned_quota, _READS_RESULTS),
)
_WAITING = Prepared(
    select(*_SUBTASK)
    .where(
        subtasks.c.state == State.WAIT,
        (subtasks.c.not_before.is_(None)) | (subtasks.c.not_before <= bindparam("now")),
    )
    .order_by(subtasks.c.priority.desc(), subtasks.c.id)
    .limit(bindparam("most"))
)


def _subtask(r: Any, hosts_of: HostsOf) -> SubtaskView:
    hosts = hosts_of(r.site)
    return SubtaskView(
        id=r.id,
        site=r.site,
        kind=r.kind,
        hosts=hosts if r.reads_results else hosts[1:],
        left=r.left,
        priority=r.priority,
        failed_on=tuple(r.failed_on),
        assigned=r.assigned_node,
        quota=r.assigned_quota,
    )


def node_load(row: NodeRow, now: datetime, rule: BufferRule) -> NodeLoad:
    """A node with its prefetched leases, what it can be given now, and how soon it begins it."""
    slots, idle = row.slots, min(row.idle, row.running)
    waited_s = (now - row.waits_since).total_seconds() if row.waits_since is not None else 0.0
    rate = start_rate(slots, row.running - idle, row.attempts_per_s, waited_s)
    free = max(0, rule.most(slots, idle, rate.per_s) - row.running - row.waiting)
    return NodeLoad(
        name=row.name,
        kinds=frozenset(row.kinds),
        slots=slots,
        prefetched=row.waiting,
        free=free,
        rate=rate,
    )


def node_loads(conn: Transaction, now: datetime, rule: BufferRule) -> list[NodeLoad]:
    """Nodes that are alive and not drained."""
    since = now - timedelta(seconds=rule.silent_after_s)
    alive = (row for row in node_store.listed(conn) if row.seen_at is not None and row.seen_at > since)
    return [node_load(row, now, rule) for row in alive if not row.drained]


def open_nodes(conn: Transaction, now: datetime, rule: BufferRule) -> list[NodeView]:
    """Nodes that are alive and not drained, with what each can be given now."""
    return [NodeView(one.name, one.kinds, one.free, one.slots) for one in node_loads(conn, now, rule)]


def unstarted(conn: Transaction, now: datetime, hosts_of: HostsOf) -> list[PrefetchedLease]:
    """Leases that no node has begun, of every node."""
    return [
        PrefetchedLease(
            _subtask(r, hosts_of),
            r.lease_node,
            r.attempt_id,
            (now - r.allocated_at).total_seconds(),
        )
        for r in _UNSTARTED.rows(conn)
    ]


_UNSTARTED = Prepared(
    select(*_SUBTASK, subtasks.c.lease_node, subtasks.c.attempt_id, attempts.c.allocated_at)
    .join(attempts, attempts.c.id == subtasks.c.attempt_id)
    .where(subtasks.c.state == State.CRAWL, subtasks.c.lease_started.is_(False))
)


def host_views(
    conn: Transaction,
    now: datetime,
    hosts_of: HostsOf,
    limits_of: Callable[[str], Limits],
    request_s: Mapping[str, float],
    lanes: int,
    sites: Collection[str],
    grants: Grants,
) -> dict[str, HostView]:
    """The hosts of these sites, and every other that is crawled or refuses somebody, with what each can take.

    Attempts that wait for the database send no requests (`nodes.at_hosts`).

    Args:
        request_s: by site, seconds from one request of an attempt to the next, where that is known.
        lanes: requests of one attempt in flight at once.
        grants: what hosts grant now.
    """
    crawled = capacity.Crawled(
        running=[tuple(row) for row in _CRAWLED.rows(conn, {"before": now - UNDER_WAY})],
        asking=node_store.at_hosts(conn),
        resting=host_store.rests_s(conn, now),
        unanswered=host_store.unanswered(conn, now),
        probing=host_store.probing(conn, now),
        sites=sites,
        grants=grants,
        addresses=node_store.permit_addresses(conn),
    )
    return capacity.host_views(crawled, hosts_of, limits_of, request_s, lanes, HITS_UNREAD)


_CRAWLED = Prepared(
    select(
        subtasks.c.site,
        subtasks.c.lease_node,
        or_(_READS_RESULTS.element, attempts.c.found.is_not(None)).label("searches"),
        func.count(),
        func.count().filter(subtasks.c.lease_started, subtasks.c.changed_at <= bindparam("before")),
    )
    .where(subtasks.c.state == State.CRAWL, attempts.c.id == subtasks.c.attempt_id)
    .group_by(subtasks.c.site, subtasks.c.lease_node, "searches")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedView:
    """A subtask in FAILED."""

    id: int
    site: str
    node: str
    reason: FailureReason
    recalls: int
    failed_on: tuple[str, ...]
    idle_releases: int


def failed(conn: Transaction, limit: int) -> list[FailedView]:
    """Subtasks in FAILED, the oldest first, locked; what another transaction has locked is passed over."""
    rows = _FAILED.rows(conn, {"most": limit})
    return [
        FailedView(
            id=r.id,
            site=r.site,
            node=r.failed_on[-1] if r.failed_on else "",
            reason=FailureReason(r.reason),
            recalls=r.recalls,
            failed_on=tuple(r.failed_on),
            idle_releases=r.idle_releases,
        )
        for r in rows
    ]


_FAILED = Prepared(
    select(*(subtasks.c[name] for name in ("id", "site", "reason", "recalls", "failed_on", "idle_releases")))
    .where(subtasks.c.state == State.FAILED)
    .order_by(subtasks.c.id)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SleepingView:
    """A subtask in SLEEP, with its last attempt's node, quota and budget."""

    id: int
    task_id: int
    product_id: int
    site: str
    kind: str
    chunk: int
    priority: int
    node: str
    quota: int
    budget_s: float
    part_id: int


def sleeping(conn: Transaction, limit: int) -> list[SleepingView]:
    """Subtasks in SLEEP, the oldest first, locked."""
    return [SleepingView(**row._asdict()) for row in _SLEEPING.rows(conn, {"most": limit})]


_SLEEPING = Prepared(
    select(*columns_of(SleepingView, subtasks, attempts))
    .join(attempts, (attempts.c.subtask_id == subtasks.c.id) & (attempts.c.no == subtasks.c.attempts))
    .where(subtasks.c.state == State.SLEEP)
    .order_by(subtasks.c.id)
    .limit(bindparam("most"))
    .with_for_update(of=subtasks, skip_locked=True)
)


# --- PRIORITY by site ---------------------------------------------------------------------------------------
#
# All use the index ``ix_subtasks_by_site`` (state, site, priority descending, id, left), so each but `pending` costs
# the same however much is queued. Neither database skips from one value of an index to the next by itself, so `heads`
# walks: the first site, the first one behind it, and so on.


def heads(conn: Transaction) -> dict[str, int]:
    """The highest priority of each site with subtasks in PRIORITY."""
    return {row.site: row.priority for row in _HEADS.rows(conn)}


def _walk() -> Select[tuple[str, int]]:
    queued = subtasks.c.state == State.PRIORITY
    first = select(func.min(subtasks.c.site).label("site")).where(queued).cte("walk", recursive=True)
    behind = select(func.min(subtasks.c.site)).where(queued, subtasks.c.site > first.c.site)
    walk = first.union_all(select(behind.scalar_subquery()).where(first.c.site.is_not(None)))
    there = select(func.max(subtasks.c.priority)).where(queued, subtasks.c.site == walk.c.site)
    highest = there.scalar_subquery().label("priority")
    return select(walk.c.site, highest).where(walk.c.site.is_not(None))


_HEADS = Prepared(_walk())


def waiting_by_site(conn: Transaction) -> dict[tuple[str, int], int]:
    """How many subtasks are in WAIT, by (site, priority)."""
    return {(site, priority): n for site, priority, n in _WAITING_BY_SITE.rows(conn)}


_WAITING_BY_SITE = Prepared(
    select(subtasks.c.site, subtasks.c.priority, func.count())
    .where(subtasks.c.state == State.WAIT)
    .group_by(subtasks.c.site, subtasks.c.priority)
)


def entrants(conn: Transaction, wanted: Mapping[str, int]) -> list[Entrant]:
    """The first so many of each site in PRIORITY: higher priority first, then first in, first out."""
    if not wanted:
        return []
    if conn.dialect.name == "sqlite":  # it has no LATERAL, and no round trips either
        rows = _FIRST.rows_of_each(conn, [{"of_site": site, "most": n} for site, n in wanted.items()])
    else:
        asked = [{"site": site, "most": n} for site, n in wanted.items()]
        return conn.records(Entrant, _FIRST_OF_SITES_POSTGRES, sites=asked)
    return [Entrant(row.id, row.site, row.priority) for row in rows]


_FIRST_OF_SITES_POSTGRES = """
    SELECT first.id, first.site, first.priority
    FROM jsonb_to_recordset(CAST(:sites AS jsonb)) AS given(site text, most integer)
    CROSS JOIN LATERAL (
        SELECT id, site, priority FROM subtasks WHERE state = 'PRIORITY' AND site = given.site
        ORDER BY priority DESC, id LIMIT given.most
    ) AS first
"""


_FIRST = Prepared(
    select(subtasks.c.id, subtasks.c.site, subtasks.c.priority)
    .where(subtasks.c.state == State.PRIORITY, subtasks.c.site == bindparam("of_site"))
    .order_by(subtasks.c.priority.desc(), subtasks.c.id)
    .limit(bindparam("most"))
)


def pending(conn: Transaction) -> dict[str, Backlog]:
    """The subtasks in PRIORITY by site, and their hits left; reads all of the index (cost: docs/scaling.md)."""
    rows = conn.execute(
        select(subtasks.c.site, func.count(), func.sum(subtasks.c.left))
        .where(subtasks.c.state == State.PRIORITY)
        .group_by(subtasks.c.site)
    )
    return {site: Backlog(n, int(left)) for site, n, left in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """The work of a turn, now.

    Attributes:
        last_event: number of the newest event, 0 if there is none. It grows with every transition.
        under_way: attempts past their result pages, as a rule (`tasks.store.queue.snapshot.UNDER_WAY`).
        overdue, failed, sleeping, queued: a lease has run out; something is in FAILED, in SLEEP, in PRIORITY.
        due: something in WAIT may be given to a node.
        due_at: time at which the next subtask in WAIT may be given.
        rested_at: when the next rest of a node at a host ends.
    """

    last_event: int
    under_way: int
    overdue: bool
    failed: bool
    sleeping: bool
    queued: bool
    due: bool
    due_at: datetime | None
    rested_at: datetime | None


def todo(conn: Transaction, now: datetime) -> Todo:
    """The work there is."""
    (found,) = _TODO.rows(conn, {"now": now, "before": now - UNDER_WAY})
    return Todo(**found._asdict())


def any_in(state: State, *where: ColumnElement[bool]) -> ColumnElement[bool]:
    """Return a condition: the queue holds a row. It reads the first row by the queue's index.

    PostgreSQL turns EXISTS into a scan of the table if it expects many rows in the queue. The scan stops at the first
    row, which may stand behind all that is done.
    """
    first = select(subtasks.c.id).where(subtasks.c.state == state, *where)
    return first.order_by(subtasks.c.priority.desc(), subtasks.c.id).limit(1).scalar_subquery().is_not(None)


def all_settled(conn: Transaction) -> bool:
    """True where every product is planned and every subtask DONE, CANCELLED or MANUAL."""
    return not _UNSETTLED.rows(conn)[0].unsettled


_UNSETTLED = Prepared(
    select(
        or_(
            exists().where(virtual_tasks.c.planned_at.is_(None)),
            *(any_in(state) for state in State if not state.settled),
        ).label("unsettled")
    )
)


_now, _before = (bindparam(name, type_=UtcDateTime()) for name in ("now", "before"))
_state, _not_before = subtasks.c.state, subtasks.c.not_before
_TODO = Prepared(
    select(
        select(func.coalesce(func.max(events.c.id), 0)).scalar_subquery().label("last_event"),
        select(func.count())
        .where(_state == State.CRAWL, subtasks.c.lease_started, subtasks.c.changed_at <= _before)
        .scalar_subquery()
        .label("under_way"),
        func.coalesce(
            select(func.min(subtasks.c.lease_deadline)).where(_state == State.CRAWL).scalar_subquery()
            <= _now,
            false(),
        ).label("overdue"),
        any_in(State.FAILED).label("failed"),
        any_in(State.SLEEP).label("sleeping"),
        any_in(State.PRIORITY).label("queued"),
        any_in(State.WAIT, or_(_not_before.is_(None), _not_before <= _now)).label("due"),
        select(func.min(_not_before))
        .where(_state == State.WAIT, _not_before > _now)
        .scalar_subquery()
        .label("due_at"),
        select(func.min(host_rests.c.until))
        .where(host_rests.c.until > _now)
        .scalar_subquery()
        .label("rested_at"),
    )
)
