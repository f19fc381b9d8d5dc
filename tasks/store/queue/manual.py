"""Subtasks that wait for a person: listed, counted by cause, tried again, and set aside by the sweeps.

`tasks.store.queue.attempts.cancel` abandons one. A sweep sets aside what no sweep can work on, so that it holds up
no other work: subtasks of a site that left the catalog, or whose host answers no node.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from splitter.catalog.names import Kind
from splitter.errors import InputError

from tasks.domain.errors import IllegalTransition
from tasks.domain.failures import SUGGESTIONS, FailureReason
from tasks.domain.reasons import Explanation, Reason, as_document, because, from_document
from tasks.domain.states import LEGAL, State, Transition
from tasks.store.queue import nodes, tasks, transitions
from tasks.store.queue.snapshot import READS_RESULTS
from tasks.store.queue.transitions import Move
from tasks.store.sql.transaction import Transaction

_AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ManualRow:
    """A subtask that waits for a person.

    Attributes:
        nodes: whose attempts in this round did not succeed, in the order of their last ones.
        since: when it came to MANUAL.
        because: of the recall strategy, when it gave up; `None` after `tasks.store.queue.upkeep.KEEP_DETAIL`.
        why: the sentence of `because`, or an empty text.
        suggestion: advice for a person, by its reason.
    """

    subtask_id: int
    product: str
    site: str
    chunk: int
    reason: str
    attempts: int
    round: int
    recalls: int
    nodes: tuple[str, ...]
    since: datetime
    because: Annotated[Explanation | None, from_document]
    why: str = field(init=False)
    suggestion: str = field(init=False)

    def __post_init__(self) -> None:
        """Derive the sentences."""
        object.__setattr__(self, "why", "" if self.because is None else str(self.because))
        object.__setattr__(self, "suggestion", SUGGESTIONS.get(self.reason, ""))


def list_manual(
    tx: Transaction,
    *,
    after: int = 0,
    most: int = sys.maxsize,
    reason: str | None = None,
    site: str | None = None,
) -> list[ManualRow]:
    """Return subtasks in MANUAL by their numbers.

    Args:
        after: only those with a higher number.
        most: maximum number of subtasks.
        reason, site: only subtasks of this cause; an empty reason is none, `None` all.
    """
    chosen = f"SELECT id {_condition(reason, site)} AND :after < id + 0 {_IN_ORDER} LIMIT :most"
    statement = f"WITH chosen AS ({chosen}) SELECT {_ROWS[tx.is_sqlite]}"
    return tx.records(ManualRow, statement, after=after, most=most, reason=reason, site=site)


def list_ids(tx: Transaction, *, reason: str | None = None, site: str | None = None) -> list[int]:
    """Return the numbers of subtasks in MANUAL, of a cause as in `list_manual`, in their order."""
    statement = f"SELECT id {_condition(reason, site)} {_IN_ORDER}"
    return [subtask_id for (subtask_id,) in tx.rows(statement, reason=reason, site=site)]


def _condition(reason: str | None, site: str | None) -> str:
    of_reason = {None: "", "": " AND reason IS NULL"}.get(reason, " AND reason = :reason")
    return f"{_MANUAL}{of_reason}{'' if site is None else ' AND site = :site'}"


# The state is written out, so that SQLite sees which subtasks the index ``ix_subtasks_manual`` holds.
_MANUAL = "FROM subtasks WHERE state = 'MANUAL'"
# A number that no index has: else a database may go through all subtasks to find some in MANUAL.
_IN_ORDER = "ORDER BY id + 0"
_NODES = {
    True: "SELECT json_group_array(node) FROM (SELECT node {} ORDER BY max(a.id))",
    False: "SELECT coalesce(jsonb_agg(node ORDER BY last), '[]') FROM (SELECT node, max(a.id) AS last {}) tried",
}
_TRIED = """
    FROM attempts a WHERE a.subtask_id = s.id AND a.round = s.round AND a.outcome <> 'succeeded' GROUP BY node
"""
_ROWS = {
    is_sqlite: f"""
    s.id AS subtask_id, p.name AS product, s.site, s.chunk, coalesce(s.reason, '') AS reason, s.attempts,
        s.round, s.recalls, ({nodes.format(_TRIED)}) AS nodes, s.changed_at AS since, e.detail -> 'because' AS because
    FROM chosen JOIN subtasks s ON s.id = chosen.id JOIN products p ON p.id = s.product_id
    LEFT JOIN events e ON e.id = (
        SELECT max(id) FROM events
        WHERE subtask_id = s.id AND transition IN ('{Transition.GIVE_UP}', '{Transition.SET_ASIDE}')
    )
    ORDER BY s.id
    """
    for is_sqlite, nodes in _NODES.items()
}


@dataclass(frozen=True, slots=True)
class Cause:
    """Subtasks that wait for a person for one reason at one site.

    Attributes:
        since: when the first of them came.
    """

    reason: str
    site: str
    count: int
    since: datetime


def list_causes(tx: Transaction) -> list[Cause]:
    """Return every cause, the one with the most subtasks first."""
    return tx.records(Cause, _CAUSES)


_CAUSES = f"""
    SELECT coalesce(reason, '') AS reason, site, count(*) AS count, min(changed_at) AS since
    {_MANUAL} GROUP BY subtasks.reason, site ORDER BY count(*) DESC, subtasks.reason, site
"""


def retry(
    tx: Transaction,
    subtask_id: int,
    *,
    node: str | None = None,
    pages: int | None = None,
    quota: int | None = None,
) -> int:
    """Begin a new round of a subtask in MANUAL: no recalls, no node to avoid, its targets untried.

    Args:
        node: the only node it may go to; None: any.
        pages: how many of its result pages that are to do are asked for, at least 1: the first ones; None: all.
        quota: most hits of each further attempt, at least 1; None: as before.

    Returns:
        How many targets are to do.

    Raises:
        UnknownSubtask: there is no such subtask.
        IllegalTransition: it is not in MANUAL.
        UnknownNode, InputError: there is no such node, or it is not of the subtask's kind.
        InputError: it can't be changed like that; nothing is.
    """
    found = transitions.lock_one(tx, subtask_id)
    if found.state is not State.MANUAL:
        raise IllegalTransition(
            "subtask {subtask} is in {state}; only one in MANUAL can be tried again",
            subtask=subtask_id,
            state=found.state,
        )
    if node is not None and Kind(found.kind) not in (kinds := nodes.get(tx, node).kinds):
        raise InputError(
            "subtask {subtask} is of kind {kind}, node {node} takes {kinds}",
            subtask=subtask_id,
            kind=found.kind,
            node=node,
            kinds=", ".join(sorted(kinds)),
        )
    if any(n is not None and n < 1 for n in (pages, quota)):
        raise InputError("a quota, or a number of pages, is at least 1")
    if pages is not None:
        _limit_pages(tx, subtask_id, pages)
    tx.run(_UNTRIED, id=subtask_id)
    left = tasks.count_left(tx, [subtask_id])[subtask_id]
    same = {"round": found.round + 1, "left": left, "assigned_node": node}
    if quota is not None:
        same["assigned_quota"] = quota
    begun = {"recalls": 0, "idle_releases": 0, "failed_on": [], "not_before": None, "reason": None}
    transitions.move(tx, Transition.RETRY, [Move(subtask_id, {**same, **begun}, node=node, detail=same)])
    return left


_UNTRIED = """
    UPDATE targets SET state = 'todo', tries = 0, reason = NULL
    WHERE subtask_id = :id AND state IN ('todo', 'given_up')
"""


def _limit_pages(tx: Transaction, subtask_id: int, pages: int) -> None:
    """Leave out all open result pages except the first ones. Raises InputError if there are fewer."""
    to_do = [target for (target,) in tx.rows(_PAGES_TO_DO, id=subtask_id)]
    if pages > len(to_do):
        raise InputError(
            "subtask {subtask} has {n} result pages to do, not {pages}; for more, run "
            "`reviewloop product edit NAME --pages N`, which crawls the product again",
            subtask=subtask_id,
            n=len(to_do),
            pages=pages,
        )
    tx.run(_LEAVE_OUT, ids=to_do[pages:])


_PAGES_TO_DO = """
    SELECT id FROM targets WHERE subtask_id = :id AND kind = 'result' AND state IN ('todo', 'given_up') ORDER BY id
"""
_LEAVE_OUT = "UPDATE targets SET state = 'refused', reason = 'left_out' WHERE id IN :ids"


def set_aside(tx: Transaction, reason: FailureReason, reasons: Mapping[int, Explanation]) -> None:
    """Move subtasks that no sweep can work on to MANUAL, except those that another process has locked.

    Args:
        reasons: why a person has to look, by subtask.
    """
    values = {"reason": reason, "failed_on": [], "not_before": None, **transitions.NO_WAIT}
    moves: dict[State, list[Move]] = {}
    for row in transitions.lock(tx, reasons, skip_locked=True):
        if row.state in LEGAL[Transition.SET_ASIDE]:
            one = Move(row.id, values, reason=reason, detail={"because": as_document(reasons[row.id])})
            moves.setdefault(row.state, []).append(one)
    for state, its in moves.items():
        transitions.move(tx, Transition.SET_ASIDE, its, state)


def set_aside_unknown_sites(tx: Transaction, catalog: str, gone: Mapping[int, str]) -> None:
    """Set aside subtasks of sites that have left the catalog.

    Args:
        catalog: its name.
        gone: the site of each subtask.
    """
    reasons = {number: because(Reason.SITE_GONE, catalog=catalog, site=site) for number, site in gone.items()}
    set_aside(tx, FailureReason.UNKNOWN_SITE, reasons)


def set_aside_unanswered(tx: Transaction, sites: Mapping[str, str], searches: Collection[str]) -> None:
    """Set aside the waiting subtasks of sites whose host answers no node.

    Args:
        sites: their hosts that don't answer, by site.
        searches: those of the sites of which only the engine's host does not answer. Subtasks that have only hits left
            don't need it.
    """
    waiting = tx.rows(_WAITING, sites=list(sites), searches=list(searches), most=_AT_ONCE)
    reasons = {
        subtask_id: because(Reason.HOST_ANSWERS_NOBODY, host=sites[site]) for subtask_id, site in waiting
    }
    set_aside(tx, FailureReason.HOST_UNREACHABLE, reasons)


_WAITING = f"""
    SELECT id, site FROM subtasks
    WHERE state = '{State.WAIT}' AND site IN :sites AND (site NOT IN :searches OR {READS_RESULTS}) LIMIT :most
"""
