"""The sweep `recall`: take back expired leases, and send failed subtasks to another node or to a person."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from tasks.domain.failures import FailureReason
from tasks.domain.reasons import Reason, as_document, because
from tasks.domain.states import Transition
from tasks.jobs.context import Context
from tasks.scheduling.after_attempt import answers_nobody
from tasks.scheduling.recall import Recall, ToManual, decide_recall
from tasks.store.queue import attempts, hosts, leases, manual, nodes, snapshot, transitions
from tasks.store.queue.leases import Lease
from tasks.store.queue.transitions import Move
from tasks.store.sql.transaction import Transaction

_BATCH = 1000


def recall(tx: Transaction, context: Context) -> None:
    """Take back expired leases, then send every failed subtask to another node or to a person."""
    silent_after = timedelta(seconds=context.settings.buffer.silent_after_s)
    # A turn that runs while a node stops may give it leases that the node can't give back.
    late = dict.fromkeys(leases.list_unstarted(tx, None), because(Reason.NODE_STOPPED))
    silent: dict[Lease, FailureReason] = {}
    overdue = leases.list_overdue(tx, _BATCH)
    alive = (
        {row.name for row in nodes.list_nodes(tx) if row.is_alive(tx.now, silent_after)} if overdue else ()
    )
    for lease, started in overdue:
        if not started and lease.node in alive:
            late[lease] = because(Reason.NOT_STARTED)
        elif lease not in late:
            silent[lease] = FailureReason.SILENT if started else FailureReason.NOT_STARTED
    if late:
        attempts.release(tx, late, skip_locked=True)
    if silent:
        attempts.silence(tx, silent)
    again, given_up = [], []
    failed = snapshot.lock_failed(tx, _BATCH)
    unreachable = {view.site for view in failed if view.reason is FailureReason.HOST_UNREACHABLE}
    dead = _list_dead_sites(tx, context, unreachable) if unreachable else {}
    for view in failed:
        least_unanswered = context.settings.recall.most_unanswered if view.site in dead else 0
        decision = decide_recall(
            view.reason,
            view.node,
            view.recalls,
            view.failed_on,
            context.settings.recall,
            context.rng,
            answers_others=answers_others(context, view.site),
            unanswered=max(least_unanswered, view.idle_releases),
        )
        if isinstance(decision, Recall):
            again.append(_recall_move(tx.now, view, decision))
        else:
            given_up.append(_manual_move(view, decision))
    transitions.move(tx, Transition.RECALL, again)
    transitions.move(tx, Transition.GIVE_UP, given_up)
    if dead:
        searches = [site for site, host in dead.items() if host != context.hosts_of(site)[1]]
        manual.set_aside_unanswered(tx, dead, searches)


def _list_dead_sites(tx: Transaction, context: Context, failed: Collection[str]) -> dict[str, str]:
    """Return the sites whose host answers no live node of their kind, with that host.

    Args:
        failed: sites with subtasks that failed because a host did not answer. Only their hosts are checked.
    """
    names = {host for site in failed for host in context.hosts_of(site)}
    unanswered = {(one.host, one.node): one.unanswered for one in hosts.list_rests(tx)}
    live = nodes.list_live(tx, timedelta(seconds=context.settings.recall.node_silent_after_s))
    dead: dict[str, str] = {}
    for name in context.catalog.sites:
        kind = context.catalog.kind_of(name)
        able = [node.name for node in live if kind in node.kinds]
        # The site's own host comes last: subtasks that need the engine's host also need it.
        for host in [one for one in context.hosts_of(name) if one in names]:
            times = [unanswered.get((host, node), 0) for node in able]
            if answers_nobody(times, context.settings.recall):
                dead[name] = host
    return dead


def _recall_move(now: datetime, view: snapshot.FailedFacts, decision: Recall) -> Move:
    detail = {
        "recall": view.recalls + 1,
        "delay_s": decision.not_before_delay_s,
        "avoid": list(decision.avoid),
    }
    values = {
        "recalls": view.recalls + 1,
        "not_before": now + timedelta(seconds=decision.not_before_delay_s),
        "assigned_node": None,
    }
    return Move(view.id, values, node=view.node, reason=view.reason, detail=detail)


def _manual_move(view: snapshot.FailedFacts, decision: ToManual) -> Move:
    return Move(
        view.id, node=view.node, reason=view.reason, detail={"because": as_document(decision.because)}
    )


def answers_others(context: Context, site: str) -> bool:
    """Return True if each host of the site answers some address: then a failure at another one is not the host's."""
    grants = context.state.grants
    return all(host in grants and grants[host].answers_well for host in context.hosts_of(site))
