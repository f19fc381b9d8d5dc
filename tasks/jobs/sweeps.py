"""The sweeps: each loads facts, lets a pure strategy decide, and applies the decision, in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from splitter.catalog.model import Site
from sqlalchemy import Connection

from tasks.jobs.context import Context
from tasks.model import NodeView, PairStats, Reason, State, SubtaskView
from tasks.queues import Transition
from tasks.store import endings, leases, nodes, products, reposts, retention, stats, transitions, views
from tasks.store.leases import Grant, Lease
from tasks.strategies.decision import Allocation, Assignment
from tasks.strategies.modification import Modification, fixed, modify
from tasks.strategies.recall import Recall, ToManual, after_failure

_BATCH = 1000
_CANDIDATES_KEPT = 12
# About 0.1 s of work in a transaction that keeps SQLite's other writers waiting.
_COMPARED_AT_ONCE = 300


def admit(conn: Connection, now: datetime, context: Context) -> int:
    """PRIORITY to WAIT, higher priority first, as far as WAIT has room; returns how many."""
    room = context.settings.wait_limit - views.count_in(conn, State.WAIT)
    if room <= 0:
        return 0
    ids = views.next_to_admit(conn, min(room, _BATCH))
    return sum(
        transitions.try_move(conn, now, subtask_id, Transition.ADMIT, transitions.Note())
        for subtask_id in ids
    )


def allocate(conn: Connection, now: datetime, context: Context) -> list[Lease]:
    """WAIT to CRAWL: who gets what; returns the leases given, for the doorbells."""
    open_nodes = views.open_nodes(conn, now, context.settings.buffer)
    if not any(node.free for node in open_nodes):
        return []
    waiting, known, decision = _decide(conn, now, context, open_nodes)
    left = {view.id: (view.site, view.left) for view in waiting}
    grants = [
        _grant(context, known, assignment, *left[assignment.subtask_id])
        for assignment in decision.assignments
    ]
    return leases.grant(conn, now, grants, timedelta(seconds=context.settings.recall.silent_after_s))


def preview(conn: Connection, now: datetime, context: Context) -> Allocation:
    """What `allocate` would decide now, for `explain`; changes nothing."""
    open_nodes = views.open_nodes(conn, now, context.settings.buffer)
    return _decide(conn, now, context, open_nodes)[2]


def _decide(
    conn: Connection, now: datetime, context: Context, open_nodes: Sequence[NodeView]
) -> tuple[list[SubtaskView], Mapping[tuple[str, str], PairStats], Allocation]:
    """Load what waits and what is known of it, and let the strategy decide."""
    settings = context.settings
    waiting = views.waiting(conn, now, settings.wait_limit, context.hosts_of)
    if not waiting:
        return [], {}, Allocation((), ())
    known = stats.load(conn, now)
    sites = {view.site for view in waiting}
    hosts = views.host_views(conn, now, context.hosts_of, context.hosts.limits, known, settings.lanes, sites)
    decision = context.strategy(waiting, open_nodes, hosts, known, settings.allocating, context.rng)
    return waiting, known, decision


def modification(
    context: Context, known: Mapping[tuple[str, str], PairStats], site: str, node: str, left: int
) -> Modification:
    """Quota and budget of an attempt on (site, node) with so many hits left."""
    rules = context.catalog.sites.get(site) or Site(engine="", rules="")
    if not context.settings.modification:
        return fixed(rules.quota, rules.budget_s)
    pair = known.get((site, node), PairStats(site, node))
    return modify(pair, max(1, left), rules.quota, rules.budget_s, context.settings.modifying)


def _grant(
    context: Context,
    known: Mapping[tuple[str, str], PairStats],
    assignment: Assignment,
    site: str,
    left: int,
) -> Grant:
    limits = modification(context, known, site, assignment.node, left)
    detail = {
        "strategy": context.settings.allocation,
        "score": assignment.score,
        "forgiven": assignment.forgiven,
        **_shown(assignment),
        "modification": asdict(limits),
    }
    return Grant(assignment.subtask_id, assignment.node, limits.quota, limits.budget_s, detail)


def _shown(assignment: Assignment) -> dict[str, object]:
    """The candidates worth keeping: the chosen node, then the best of the others; how many are left out."""
    ranked = sorted(
        assignment.candidates,
        key=lambda c: (c.node != assignment.node, not c.eligible, -(c.score or 0.0), c.node),
    )
    kept = ranked[:_CANDIDATES_KEPT]
    return {"candidates": [asdict(c) for c in kept], "candidates_left_out": len(ranked) - len(kept)}


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a recall sweep did: counts."""

    silenced: int = 0
    released: int = 0
    recalled: int = 0
    manual: int = 0


def recall(conn: Connection, now: datetime, context: Context) -> Recalled:
    """Take back leases that ran out, then decide on every failed subtask: to another node, or to a person."""
    silenced = released = recalled = manual = 0
    silent_after = timedelta(seconds=context.settings.buffer.silent_after_s)
    for lease, started in leases.overdue(conn, now, _BATCH):
        if not started and nodes.alive(conn, now, lease.node, silent_after):
            released += endings.release(conn, now, lease, "a live node did not start it in time")
        else:
            reason = Reason.SILENT if started else Reason.NOT_STARTED
            silenced += endings.silence(conn, now, lease, reason)
    for view in views.failed(conn, _BATCH):
        decision = after_failure(
            view.reason, view.node, view.recalls, view.failed_on, context.settings.recall, context.rng
        )
        if isinstance(decision, Recall):
            recalled += _recall(conn, now, view, decision)
        else:
            manual += _to_manual(conn, now, view, decision)
    return Recalled(silenced, released, recalled, manual)


def _recall(conn: Connection, now: datetime, view: views.FailedView, decision: Recall) -> bool:
    note = transitions.Note(
        node=view.node,
        reason=view.reason,
        detail={
            "recall": view.recalls + 1,
            "delay_s": decision.not_before_delay_s,
            "avoid": list(decision.avoid),
        },
    )
    values = {
        "recalls": view.recalls + 1,
        "not_before": now + timedelta(seconds=decision.not_before_delay_s),
        "assigned_node": None,
    }
    return transitions.try_move(conn, now, view.id, Transition.RECALL, note, values=values)


def _to_manual(conn: Connection, now: datetime, view: views.FailedView, decision: ToManual) -> bool:
    note = transitions.Note(node=view.node, reason=view.reason, detail=asdict(decision))
    return transitions.try_move(conn, now, view.id, Transition.GIVE_UP, note)


def wake(conn: Connection, now: datetime, context: Context) -> int:
    """SLEEP to DONE: what is left over becomes a follow-up subtask, and the next chunk is released if there is more.

    Modification takes effect here: the event tells quota and budget of what is left, before and after; the
    follow-up gets them anew for the node it goes to.
    """
    woken = 0
    known = stats.load(conn, now)
    sleeping = views.sleeping(conn, _BATCH)
    left_of = leases.left_to_do(conn, [view.id for view in sleeping])
    for view in sleeping:
        left = left_of[view.id]
        follow_up = products.follow_up(conn, now, view.id, left) if left else None
        chunk = None
        if products.more_after(conn, view.task_id, view.chunk):
            chunk = products.release_chunk(conn, now, view.task_id, view.chunk + 1)
        limits = modification(context, known, view.site, view.node, max(1, left))
        detail = {
            "left": left,
            "follow_up": follow_up,
            "next_chunk": chunk,
            "quota": [view.quota, limits.quota],
            "budget_s": [view.budget_s, limits.budget_s],
            "modification": asdict(limits),
        }
        woken += transitions.try_move(
            conn, now, view.id, Transition.WAKE, transitions.Note(node=view.node, detail=detail)
        )
    return woken


def recrawl_due(conn: Connection, now: datetime, context: Context) -> int:  # noqa: ARG001
    """Begin a new round of every product whose recrawl time has come."""
    return products.recrawl_due(conn, now)


def link_reposts(conn: Connection, now: datetime, context: Context) -> int:  # noqa: ARG001
    """Link the next reviews whose text is nearly an earlier one's; returns how many were looked at."""
    return reposts.link_reposts(conn, now, _COMPARED_AT_ONCE)


def drop_old(conn: Connection, now: datetime, context: Context) -> int:  # noqa: ARG001
    """Drop the data behind decisions that nobody asks about any more."""
    return retention.drop_old(conn, now)
