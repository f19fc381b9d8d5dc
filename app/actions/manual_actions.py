"""Actions of people on subtasks and nodes. The audit log records each. Used by commands, dashboard and API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from splitter.errors import InputError, Message
from tasks.domain.errors import TaskError
from tasks.domain.reasons import Reason, because
from tasks.store.queue import attempts, manual, nodes, notices
from tasks.store.queue.nodes import Node
from tasks.store.sql.database import Store
from tasks.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Action:
    """An action on a subtask.

    Attributes:
        name: its name in the audit log.
        act: called with connection, time and the subtask's number.
        detail: further facts for the audit log.
    """

    name: str
    act: Callable[..., object]
    detail: dict[str, Any]


def retry() -> Action:
    """Return the action that tries a subtask again on any node."""
    return Action("retry", manual.retry, {})


def assign(node: str) -> Action:
    """Return the action that tries a subtask again on one node only."""
    return Action("assign", partial(manual.retry, node=node), {"node": node})


def edit(pages: int | None, quota: int | None) -> Action:
    """Return the action that tries a subtask again with fewer result pages or another quota. `None` keeps the value."""
    wanted = {name: n for name, n in (("pages", pages), ("quota", quota)) if n is not None}
    return Action("edit" if wanted else "retry", partial(manual.retry, pages=pages, quota=quota), wanted)


def abandon(why: str) -> Action:
    """Return the action that gives a subtask up for good."""
    return Action(
        "abandon", partial(attempts.cancel, why=because(Reason.PERSON_SAID, text=why)), {"why": why}
    )


@dataclass(frozen=True, slots=True)
class RefusedSubtask:
    """A subtask that refuses an action, with the reason."""

    subtask: int
    why: Message


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an action: the numbers of the subtasks that were changed, and those that refused it."""

    done: list[int]
    refused: list[RefusedSubtask]


def act_on_each(
    store: Store, ids: Sequence[int], action: Action, who: str, *, dry_run: bool = False
) -> Outcome:
    """Apply an action to each subtask, in one transaction. A subtask that refuses it does not stop the others.

    Args:
        dry_run: roll everything back at the end.
    """
    return store.write(lambda tx: _act_on_each(tx, ids, action, who), dry_run=dry_run)


def _act_on_each(tx: Transaction, ids: Sequence[int], action: Action, who: str) -> Outcome:
    outcome = Outcome([], [])
    for number in dict.fromkeys(ids):
        try:
            action.act(tx, number)
            outcome.done.append(number)
        except (TaskError, InputError) as error:
            outcome.refused.append(RefusedSubtask(number, error.message))
    if outcome.done:
        subject = ", ".join(map(str, outcome.done[:20])) + (" ..." if len(outcome.done) > 20 else "")
        detail = {"subtasks": outcome.done[:1000], "count": len(outcome.done), **action.detail}
        notices.record_action(tx, who, action.name, subject, **detail)
    return outcome


def add_node(store: Store, node: Node, number: int | None, who: str) -> None:
    """Add a node that later runs also start. Raises InputError.

    Args:
        number: its number of slots; `None` leaves that to the run.
    """
    with store.begin() as tx:
        nodes.add(tx, node, number)
        proxy = str(node.proxy) if node.proxy is not None else None
        notices.record_action(tx, who, "add", node.name, address=node.address, proxy=proxy)


def remove_node(store: Store, name: str, silent_after: timedelta, who: str) -> None:
    """Remove a node that was added. Raises UnknownNode, InputError."""
    with store.begin() as tx:
        nodes.remove(tx, name, silent_after)
        attempts.release_leases(tx, name, because(Reason.NODE_REMOVED))
        notices.record_action(tx, who, "remove", name)


def set_drained(store: Store, name: str, drained: bool, who: str) -> None:
    """Drain a node, or end its draining. Raises UnknownNode."""
    with store.begin() as tx:
        nodes.set_drained(tx, name, drained)
        notices.record_action(tx, who, "drain" if drained else "resume", name)
