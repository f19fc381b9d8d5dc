"""The sweeps: each loads facts, lets a pure strategy decide, and applies the decision, in one transaction."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from splitter.catalog.model import Site

from tasks.domain.backoff import backoff_s
from tasks.domain.batches import LANES
from tasks.domain.facts import HostFacts, NodeFacts, SubtaskFacts
from tasks.domain.grants import Grants
from tasks.domain.states import State, Transition
from tasks.jobs.context import Context
from tasks.jobs.measurements import load_of
from tasks.jobs.partitioning import refine, search_urls
from tasks.jobs.recalling import answers_others
from tasks.scheduling import admission, capacity, rebalancing
from tasks.scheduling.capacity import Crawled
from tasks.scheduling.decision import AllocationStrategy, Assignment, Waiting, as_detail, still_waiting
from tasks.scheduling.modification import Modification, defaults, modify
from tasks.scheduling.ready_queue import ReadyQueue
from tasks.scheduling.rebalancing import NodeLoad
from tasks.store.queue import attempts, leases, manual, nodes, snapshot, tasks, transitions
from tasks.store.queue.hosts import list_rests
from tasks.store.queue.leases import HITS_UNREAD, Grant, Lease
from tasks.store.queue.transitions import Move
from tasks.store.sql.transaction import Transaction

_BATCH = 1000


def admit(tx: Transaction, context: Context) -> int:
    """Move subtasks from PRIORITY to WAIT: a few of every site, higher priority first. Return their number."""
    heads = snapshot.list_heads(tx)
    if not heads:
        return 0
    waiting = snapshot.count_waiting(tx)
    limit = context.settings.wait_limit
    found = snapshot.list_entrants(tx, admission.openings(heads, waiting, limit))
    chosen = admission.admit(found, heads, waiting, limit)
    locked = transitions.lock(tx, chosen[:_BATCH], skip_locked=True)
    moves = [Move(row.id) for row in locked if row.state is State.PRIORITY]
    transitions.move(tx, Transition.ADMIT, moves)
    return len(moves)


def allocate(tx: Transaction, context: Context) -> list[Lease]:
    """Move subtasks from WAIT to CRAWL by giving them to nodes. Return the leases, for the notifications."""
    nodes_now = open_nodes(tx, context)
    if not any(node.free for node in nodes_now):
        return []
    return allocate_to(tx, context, nodes_now)


def open_nodes(tx: Transaction, context: Context) -> list[NodeLoad]:
    """Return the nodes that are alive and not drained, each with the number of leases that it can get now."""
    rule = context.settings.buffer
    silent_after = timedelta(seconds=rule.silent_after_s)
    rows = nodes.list_nodes(tx)
    lacks = context.state.lacks(tx, context.entries, rows)
    return [
        replace(load_of(row, tx.now, rule), lacks=lacks.get(row.name, frozenset()) | context.left_out)
        for row in rows
        if row.is_alive(tx.now, silent_after) and not row.drained
    ]


def allocate_to(tx: Transaction, context: Context, open_nodes: Sequence[NodeFacts]) -> list[Lease]:
    """Give waiting subtasks to these nodes. Return the leases."""
    return _grant_leases(tx, context, _allocation(tx, context, open_nodes))


def _allocation(
    tx: Transaction, context: Context, open_nodes: Sequence[NodeFacts], *, keep: bool = False
) -> list[Assignment]:
    state = context.state
    state.measure(tx)
    if context.settings.uses_run_times:
        state.read_run_times(tx)
    state.count_queued(tx)
    return _decide(tx, context, state.ready, state.strategy, open_nodes, keep=keep)


def _grant_leases(tx: Transaction, context: Context, assignments: Sequence[Assignment]) -> list[Lease]:
    now_s = tx.now.timestamp()
    grants = [_grant(context, now_s, assignment) for assignment in assignments]
    return leases.grant(tx, grants, timedelta(seconds=context.settings.recall.silent_after_s))


def rebalance(tx: Transaction, context: Context) -> list[Lease]:
    """Move leases that have not begun to nodes that begin them sooner. Return the new leases, for the notifications.

    `tasks.scheduling.rebalancing` decides which leases go back, and how many each other node takes. A new strategy
    and ready queue then decide which lease goes where, and if a waiting subtask comes first. For this decision the
    giving nodes have 0 slots, so that no subtask waits for them. A lease that no node gets stays where it is.
    """
    loads = open_nodes(tx, context)
    if not rebalancing.is_unbalanced(loads):
        return []
    prefetched = snapshot.list_unstarted(tx, context.hosts_of)
    context.state.learn(tx)
    hosts = _hosts(tx, context, {one.site for one in prefetched})
    moves = rebalancing.rebalance(loads, prefetched, hosts, tx.now)
    if not moves.returned:
        return []
    givers = {one.lease.node for one in moves.returned}
    takers = [
        replace(one, free=moves.takes.get(one.name, 0), slots=0 if one.name in givers else one.slots)
        for one in loads
    ]
    ready = ReadyQueue()
    ready.set_pending(context.state.ready.pending)
    returned = [one.lease for one in moves.returned]
    assignments = _decide(tx, context, ready, context.state.new_strategy(), takers, returned)
    # A lease that has begun meanwhile is no longer among the unstarted ones: it stays where it is.
    reasons = {one.lease.attempt_id: one.because for one in moves.returned}
    chosen = {one.subtask.id for one in assignments}
    released = {
        lease: reasons[lease.attempt_id]
        for node in sorted(givers)
        for lease in leases.list_unstarted(tx, node)
        if lease.attempt_id in reasons and lease.subtask_id in chosen
    }
    attempts.release(tx, released, skip_locked=True)
    return _grant_leases(tx, context, assignments)


@dataclass(frozen=True, slots=True)
class Preview:
    """The decision that `allocate` would make."""

    assignments: tuple[Assignment, ...]
    waiting: tuple[Waiting, ...]


def preview(tx: Transaction, context: Context) -> Preview:
    """Return the decision that `allocate` would make now, for `explain`. The store is not changed."""
    nodes_now = open_nodes(tx, context)
    assignments = _allocation(tx, context, nodes_now, keep=True)
    return Preview(tuple(assignments), still_waiting(context.state.ready, context.state.strategy))


def _decide(
    tx: Transaction,
    context: Context,
    ready: ReadyQueue,
    strategy: AllocationStrategy,
    open_nodes: Sequence[NodeFacts],
    returned: Sequence[SubtaskFacts] = (),
    *,
    keep: bool = False,
) -> list[Assignment]:
    """Load the waiting subtasks and facts about them, and let the strategy decide.

    Args:
        tx, context: transaction and context of the sweep.
        ready: the ready queue, which is updated.
        strategy: the strategy that decides.
        open_nodes: nodes that are alive and not drained.
        returned: leased subtasks that are treated as waiting.
        keep: True to leave subtasks of sites outside the catalog in WAIT, False to set them aside.
    """
    ready.clear()
    waiting = snapshot.list_waiting(tx, context.most_waiting, context.hosts_of)
    if returned:
        waiting = sorted([*waiting, *returned], key=lambda one: (-one.priority, one.id))
    gone = {view.id: view.site for view in waiting if view.site not in context.catalog.sites}
    if gone and not keep:
        manual.set_aside_unknown_sites(tx, context.catalog.name, gone)
    waiting = [view for view in waiting if view.id not in gone]
    if not waiting:
        return []
    knowledge = context.state.learn(tx)
    hosts = _hosts(tx, context, {view.site for view in waiting})
    for host, n in Counter(host for view in returned for host in set(view.hosts)).items():
        hosts[host] = replace(hosts[host], room=max(n, hosts[host].room))  # their attempts still run there
    _bring_up_to_date(ready, open_nodes, hosts)
    for view in waiting:
        ready.put(view)
    refused = any(view.resting - view.unanswered for view in hosts.values())
    if not (keep or refused or ready.any_able()):
        return []  # no subtask can be given, and the strategy has no refusal to record
    return strategy.decide(ready, knowledge, tx.now.timestamp(), context.rng, explain=True)


def _bring_up_to_date(
    ready: ReadyQueue, open_nodes: Sequence[NodeFacts], hosts: Mapping[str, HostFacts]
) -> None:
    """Update the nodes and hosts in the ready queue."""
    for name in ready.nodes.keys() - {node.name for node in open_nodes}:
        ready.drop_node(name)
    for node in open_nodes:
        ready.set_node(node)
    for name in ready.hosts.keys() - hosts.keys():
        ready.drop_host(name)
    for view in hosts.values():
        ready.set_host(view)


def _hosts(tx: Transaction, context: Context, sites: Collection[str]) -> dict[str, HostFacts]:
    limits, state = context.hosts.limits, context.state
    crawled = load_crawled(tx, sites, state.grants)
    return capacity.host_views(crawled, context.hosts_of, limits, state.request_s, LANES, HITS_UNREAD)


def load_crawled(tx: Transaction, sites: Collection[str], grants: Grants) -> Crawled:
    """Return the running work and the rests of hosts.

    Args:
        sites: sites that will be crawled.
        grants: rates that hosts grant now.
    """
    rows = nodes.list_nodes(tx)
    return Crawled(
        running=snapshot.count_crawled(tx),
        asking={row.name: row.asking_share for row in rows if row.asking_share < 1.0},
        rests=[
            (one.host, one.node, (one.until - tx.now).total_seconds(), one.unanswered > 0)
            for one in list_rests(tx)
        ],
        sites=sites,
        grants=grants,
        addresses={row.name: row.permit_address for row in rows},
    )


def modification(context: Context, now_s: float, site: str, node: str, left: int) -> Modification:
    """Return quota and budget of an attempt at (site, node) with `left` hits, from the last read statistics."""
    rules = context.catalog.sites.get(site) or Site(engine="", rules="")
    if not context.settings.modification:
        return defaults(rules.quota, rules.budget_s)
    if rules.engine in context.catalog.engines:
        # An unread result page counts for HITS_UNREAD, and the engine may list more than that on one.
        per_page = context.catalog.engines[rules.engine].hits_per_page
        left = math.ceil(left * max(1.0, per_page / HITS_UNREAD))
    pair = context.state.knowledge.pair(site, node, now_s)
    return modify(pair, max(1, left), rules.quota, rules.budget_s)


def _grant(context: Context, now_s: float, assignment: Assignment) -> Grant:
    subtask = assignment.subtask
    limits = modification(context, now_s, subtask.site, assignment.node, subtask.left)
    if subtask.quota is not None:
        limits = limits.set_by_person(subtask.quota)
    detail = {
        "strategy": context.settings.allocation,
        "score": assignment.score,
        "forgiven": assignment.forgiven,
        "candidates": [as_detail(one) for one in assignment.candidates],
        "candidates_left_out": len(context.state.ready.nodes) - len(assignment.candidates),
        "modification": limits.as_detail(),
    }
    if assignment.prices is not None:
        detail["prices"] = as_detail(assignment.prices)
    if assignment.floor.least_share:
        detail["floor"] = as_detail(assignment.floor)
    return Grant(
        subtask.id,
        assignment.node,
        limits.quota,
        limits.budget_s,
        detail,
        assignment.floor,
        context.entries.get(subtask.site, ""),
    )


def wake(tx: Transaction, context: Context) -> int:
    """Move subtasks from SLEEP to DONE. Remaining targets become a follow-up, and further hits release the next chunk.

    A query with more hits than its engine lists, or with none, is split or relaxed (`tasks.jobs.partitioning`).

    Modification takes effect here: the event shows quota and budget of the remaining targets, before and after. The
    follow-up gets new ones for the node it goes to.
    """
    sleeping = tasks.lock_sleeping(tx, _BATCH)
    if not sleeping:
        return 0
    context.state.learn(tx)
    partitions = tasks.list_partitions(tx, {view.part_id for view in sleeping})
    refined = refine(tx, context, sleeping, partitions)
    next_ones = {
        view.id: (view.part_id, view.chunk + 1)
        for view in sleeping
        if view.shows_more and view.chunk + 1 < partitions[view.part_id].end
        if (view.part_id, view.chunk) not in refined.stop
    }
    # Without its site's entry the search URLs of the next chunk are unknown.
    sites = context.catalog.sites
    gone = {view.id: view.site for view in sleeping if view.id in next_ones and view.site not in sites}
    manual.set_aside_unknown_sites(tx, context.catalog.name, gone)
    sleeping = [view for view in sleeping if view.id not in gone]
    unfinished = [(view, _retry_at(tx.now, context, view.site, view.tries)) for view in sleeping if view.left]
    follow_ups = tasks.make_follow_ups(tx, unfinished)
    begun = [*refined.begin, *(next_ones[view.id] for view in sleeping if view.id in next_ones)]
    released = tasks.release_chunks(tx, begun, partial(search_urls, context.catalog))
    moves = []
    for view in sleeping:
        limits = modification(context, tx.now.timestamp(), view.site, view.node, max(1, view.left))
        detail = {
            "left": view.left,
            "follow_up": follow_ups.get(view.id),
            "next_chunk": released.get((view.part_id, view.chunk + 1)),
            "quota": [view.quota, limits.quota],
            "budget_s": [view.budget_s, limits.budget_s],
            "modification": asdict(limits),
            **refined.details.get(view.id, {}),
        }
        moves.append(Move(view.id, {"left": 0}, node=view.node, detail=detail))
    transitions.move(tx, Transition.WAKE, moves)
    return len(moves)


def _retry_at(now: datetime, context: Context, site: str, tries: int) -> datetime | None:
    """Return when targets that failed `tries` times may be tried again: after a growing, jittered wait if the site's
    host may be the cause. After faults of one pair another node may take them without a wait."""
    if not tries or answers_others(context, site):
        return None
    recall = context.settings.recall
    longest_s = backoff_s(recall.backoff_s, tries, recall.backoff_max_s)
    return now + timedelta(seconds=context.rng.uniform(0.0, longest_s))
