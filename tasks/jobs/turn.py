"""A turn of the loop: the sweeps that have work, run whenever a node may get work.

A turn without work costs one small statement. Allocation loads all waiting subtasks. So after a decision without
leases it decides again only if a fact has changed: a transition, a begun lease, the free slots of a node, the rate
that a host grants, a time that was reached. Time alone may also change a decision (a plan grows old, a back-off ends),
so it decides again after a while, which grows while there are no leases.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from tasks.domain.facts import NodeFacts
from tasks.domain.grants import LONGEST_QUEUE_S, AddressGrants, Grants
from tasks.jobs import recalling, sweeps
from tasks.jobs.context import Context
from tasks.jobs.scheduler_state import EmptyDecision
from tasks.scheduling.capacity import IDLE_S
from tasks.store.queue.leases import Lease
from tasks.store.queue.snapshot import Todo, find_todo
from tasks.store.sql.transaction import Transaction


def turn(tx: Transaction, context: Context) -> list[Lease]:
    """Run the sweeps that have work. Return the new leases, for the notifications."""
    state = context.state
    there = find_todo(tx)
    if there.recall:
        recalling.recall(tx, context)
    if there.wake:
        sweeps.wake(tx, context)
    if (there.admit or there.wake) and there.newest_event != state.turned_at_event:
        sweeps.admit(tx, context)
    if there.recall or there.wake or there.admit:
        there = find_todo(tx)  # after the changes of these sweeps
    given = _allocate(tx, context, there) if there.allocate else []
    state.turned_at_event = there.newest_event  # new leases make room in WAIT, so the next turn admits
    state.next_turn_at = there.next_at
    return given


def _allocate(tx: Transaction, context: Context, there: Todo) -> list[Lease]:
    state = context.state
    open_nodes = sweeps.open_nodes(tx, context)
    if not any(node.free for node in open_nodes):
        return []
    facts = _facts(there, open_nodes, state.grants)
    if state.empty_decision is not None and state.empty_decision.still_holds(facts, tx.now):
        return []
    given = sweeps.allocate_to(tx, context, open_nodes)
    state.empty_decision = None if given else EmptyDecision.record(facts, tx.now, state.empty_decision)
    return given


def _facts(there: Todo, open_nodes: Sequence[NodeFacts], grants: Grants) -> Hashable:
    """Return the facts of a decision that change often. A delayed subtask is included from the time it is due."""
    hosts = frozenset(
        (
            host,
            round(one.share, 2),
            one.next_s > LONGEST_QUEUE_S,
            one.next_s < IDLE_S,
            frozenset((address, *_address(its)) for address, its in one.addresses.items()),
        )
        for host, one in grants.items()
    )
    nodes = tuple((one.name, one.kinds, one.free, one.slots, one.lacks) for one in open_nodes)
    return there.newest_event, there.under_way, there.next_at, nodes, hosts


def _address(granted: AddressGrants) -> tuple[float, bool]:
    return round(granted.share, 2), granted.next_s > LONGEST_QUEUE_S
