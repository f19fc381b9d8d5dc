"""Actions of people on subtasks and nodes, recorded in the audit log. Used by commands, dashboard and API."""

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
        name: name of the action in the audit log.
        act: called with transaction, time and number of the subtask.
        detail: further data for the audit log.
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
    """Return the action that tries a subtask again with fewer result pages or another quota. `None` changes nothing."""
    wanted = {name: n for name, n in (("pages", pages), ("quota", quota)) if n is not None}
    return Action("edit" if wanted else "retry", partial(manual.retry, pages=pages, quota=quota), wanted)


def abandon(why: str) -> Action:
    """Return the action that gives a subtask up for good."""
    return Action(
        "abandon", partial(attempts.cancel, why=because(Reason.PERSON_SAID, text=why)), {"why": why}
    )


@dataclass(frozen=True, slots=True)
class RefusedSubtask:
    """A subtask on which an action is not possible, with the reason."""

    subtask: int
    why: Message


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an action: numbers of the changed subtasks, and subtasks that could not be changed."""

    done: list[int]
    refused: list[RefusedSubtask]


def act_on_each(
    store: Store, ids: Sequence[int], action: Action, who: str, *, dry_run: bool = False
) -> Outcome:
    """Apply an action to each subtask, in one transaction. If it is not possible on one, the others are still changed.

    Args:
        dry_run: True to change nothing and only return the result.
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
    """Add a node that later runs start in addition to their own. Raises InputError.

    Args:
        number: number of slots; `None` leaves the choice to the run.
    """
    with store.begin() as tx:
        nodes.add(tx, node, number)
        proxy = str(node.proxy) if node.proxy is not None else None
        notices.record_action(tx, who, "add", node.name, address=node.address, proxy=proxy)


def remove_node(store: Store, name: str, silent_after: timedelta, who: str) -> None:
    """Remove a node that a person added. Raises UnknownNode or InputError.

    Args:
        silent_after: age of the last heartbeat after which a node counts as not running.
    """
    with store.begin() as tx:
        nodes.remove(tx, name, silent_after)
        attempts.release_leases(tx, name, because(Reason.NODE_REMOVED))
        notices.record_action(tx, who, "remove", name)


def set_drained(store: Store, name: str, drained: bool, who: str) -> None:
    """Stop giving work to a node, or give it work again if `drained` is False. Raises UnknownNode."""
    with store.begin() as tx:
        nodes.set_drained(tx, name, drained)
        notices.record_action(tx, who, "drain" if drained else "resume", name)
