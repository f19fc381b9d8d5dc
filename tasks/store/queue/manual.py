"""Subtasks that wait for a person: listed by cause and by page, tried again, and set aside by the sweeps.

`tasks.store.queue.closing.cancel` abandons one. A sweep sets aside what no sweep can work on, so that it holds up
no other work. Work of a site that left the catalog is found when it would be given to a node. A row that can't be read
makes the sweep fail that meets it; the next tick then looks at each row by itself, once.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from splitter.catalog.names import Kind
from splitter.errors import InputError
from sqlalchemy import ColumnElement, Row, and_, func, literal_column, select, update

from tasks.domain.errors import IllegalTransition, UnknownSubtask
from tasks.domain.failures import FailureReason, FetchError
from tasks.domain.page_key import canonical, page_key
from tasks.domain.states import State, Transition
from tasks.scheduling.recall import SUGGESTIONS
from tasks.store.queue import nodes, partitions, tasks, transitions
from tasks.store.queue.transitions import EventData
from tasks.store.sql.tables import events, products, subtasks, targets
from tasks.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class ManualRow:
    """A subtask that waits for a person.

    Attributes:
        since: when it came to MANUAL.
        why, suggestion: of the recall strategy, when it gave up.
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
    why: str
    suggestion: str


# Written out, so that SQLite sees which subtasks the index ``ix_subtasks_manual`` holds.
_IN_MANUAL = subtasks.c.state == literal_column(f"'{State.MANUAL}'")
IN_ORDER = subtasks.c.id + 0
"""A subtask's number, as no index has it: else a database may go through all subtasks to find some in MANUAL."""


def waiting(reason: str | None = None, site: str | None = None) -> ColumnElement[bool]:
    """Whether a subtask is in MANUAL, of a cause, of a site, or any; an empty reason is none."""
    s = subtasks.c
    of_reason = [] if reason is None else [s.reason == reason if reason else s.reason.is_(None)]
    return and_(_IN_MANUAL, *of_reason, *([] if site is None else [s.site == site]))


def listed(conn: Transaction) -> list[ManualRow]:
    """Every subtask in MANUAL, grouped by cause (reason, then site)."""
    last = (
        select(events.c.subtask_id, func.max(events.c.id).label("id"))
        .where(events.c.transition.in_((Transition.GIVE_UP, Transition.SET_ASIDE)))
        .group_by(events.c.subtask_id)
        .subquery()
    )
    rows = conn.execute(
        select(subtasks, products.c.name, events.c.at, events.c.detail)
        .join(products, products.c.id == subtasks.c.product_id)
        .join(last, last.c.subtask_id == subtasks.c.id)
        .join(events, events.c.id == last.c.id)
        .where(waiting())
        .order_by(subtasks.c.reason, subtasks.c.site, subtasks.c.id)
    )
    return [
        manual_row(r, r.at, (r.detail or {}).get("why", ""), (r.detail or {}).get("suggestion", ""))
        for r in rows
    ]


def manual_row(row: Row[Any], since: datetime, why: str, suggestion: str) -> ManualRow:
    """A subtask of MANUAL, from its row with the product's name."""
    return ManualRow(
        subtask_id=row.id,
        product=row.name,
        site=row.site,
        chunk=row.chunk,
        reason=row.reason or "",
        attempts=row.attempts,
        round=row.round,
        recalls=row.recalls,
        nodes=tuple(row.failed_on),
        since=since,
        why=why,
        suggestion=suggestion,
    )


def retry(
    conn: Transaction,
    now: datetime,
    subtask_id: int,
    *,
    node: str | None = None,
    edit: Edit | None = None,
) -> int:
    """Begin a new round of a subtask in MANUAL: no recalls, no node to avoid, its targets untried.

    Args:
        node: the only node it may go to; None: any.
        edit: what is changed of it before.

    Returns:
        How many targets are to do.

    Raises:
        UnknownSubtask: there is no such subtask.
        IllegalTransition: it is not in MANUAL.
        UnknownNode, InputError: there is no such node, or it is not of the subtask's kind.
        InputError: it can't be changed like that; nothing is.
    """
    row = conn.execute(
        select(subtasks.c.state, subtasks.c.round, subtasks.c.kind).where(subtasks.c.id == subtask_id)
    ).one_or_none()
    if row is None:
        raise UnknownSubtask(f"there is no subtask {subtask_id}")
    if row.state != State.MANUAL:
        raise IllegalTransition(
            f"subtask {subtask_id} is in {row.state}; only one in MANUAL can be tried again"
        )
    if node is not None:
        _check_kind(conn, subtask_id, row.kind, node)
    if edit is not None:
        _change(conn, subtask_id, edit)
    conn.execute(
        update(targets)
        .where(targets.c.subtask_id == subtask_id, targets.c.state.in_(("todo", "given_up")))
        .values(state="todo", tries=0, reason=None)
    )
    left = tasks.left_to_do(conn, [subtask_id])[subtask_id]
    quota = {"assigned_quota": edit.quota} if edit is not None and edit.quota is not None else {}
    transitions.move(
        conn,
        now,
        subtask_id,
        Transition.RETRY,
        transitions.EventData(
            node=node, detail={"round": row.round + 1, "left": left, "assigned_node": node, **quota}
        ),
        values={
            "round": row.round + 1,
            "recalls": 0,
            "idle_releases": 0,
            "failed_on": [],
            "not_before": None,
            "assigned_node": node,
            "reason": None,
            "left": left,
            **quota,
        },
    )
    return left


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Changes of a person to a subtask that failed.

    Attributes:
        urls: other addresses of targets that are to do or given up, by the targets' numbers; an empty one leaves its
            target out.
        pages: how many of its result pages that are to do are asked for, at least 1: the first ones; None: all.
        quota: most hits of each further attempt, at least 1; None: as before.
    """

    urls: Mapping[int, str] = field(default_factory=dict)
    pages: int | None = None
    quota: int | None = None


def _change(conn: Transaction, subtask_id: int, edit: Edit) -> None:
    """Change addresses and pages; all is checked before anything is changed. Raises InputError."""
    if (edit.quota is not None and edit.quota < 1) or (edit.pages is not None and edit.pages < 1):
        raise InputError("a quota, or a number of pages, is at least 1")
    urls = dict(edit.urls)
    if edit.pages is not None:
        t = targets.c
        mine = (t.subtask_id == subtask_id) & (t.kind == "result") & t.state.in_(("todo", "given_up"))
        there = [n for n in conn.scalars(select(t.id).where(mine).order_by(t.id)) if urls.get(n) != ""]
        if edit.pages > len(there):
            raise InputError(
                f"subtask {subtask_id} has {len(there)} result pages to do, not {edit.pages}; more are asked for by "
                "`reviewloop product edit NAME --pages N`, which looks for the product anew"
            )
        urls |= dict.fromkeys(there[edit.pages :], "")
    if urls:
        _change_addresses(conn, subtask_id, urls)


def _change_addresses(conn: Transaction, subtask_id: int, urls: Mapping[int, str]) -> None:
    """Change addresses of targets; all are checked before any is changed. Raises InputError."""
    t = targets.c
    mine = select(t.id, t.url, t.kind, t.task_id).where(
        t.subtask_id == subtask_id, t.state.in_(("todo", "given_up"))
    )
    known = {row.id: row for row in conn.execute(mine)}
    if strange := sorted(set(urls) - set(known)):
        raise InputError(f"subtask {subtask_id} has no target {strange[0]} that is to do or given up")
    if all(urls.get(number, known[number].url) == "" for number in known):
        raise InputError(f"subtask {subtask_id} would have no address left: abandon it")
    new = {number: url for number, url in urls.items() if url}
    keys = {}
    for number, url in new.items():
        own = urlsplit(known[number].url).hostname
        try:
            if known[number].kind == "hit":
                new[number] = canonical(url)
            keys[number] = page_key(url)
        except FetchError as error:
            raise InputError(f"target {number}: {error}") from None
        if urlsplit(url).hostname != own:
            raise InputError(f"target {number}: {url[:200]} is not at {own}, which its subtask asks")
    task_id = next(iter(known.values())).task_id
    taken = select(t.url).where(t.task_id == task_id, t.url_key.in_(keys.values()), t.id.not_in(keys))
    twice = conn.execute(taken).scalar()
    if twice is not None or len(set(keys.values())) < len(keys):
        raise InputError(f"its task has {twice or 'one of these addresses'} already")
    for number in urls:  # first out of each other's way: two may be exchanged
        conn.execute(update(targets).where(t.id == number).values(url_key=number.to_bytes(16)))
    for number, url in new.items():
        conn.execute(update(targets).where(t.id == number).values(url=url, url_key=keys[number]))
    for number in set(urls) - set(new):
        values = {"state": "refused", "reason": "left_out", "url_key": page_key(known[number].url)}
        conn.execute(update(targets).where(t.id == number).values(**values))


def chosen(conn: Transaction, *, reason: str | None = None, site: str | None = None) -> list[int]:
    """Subtasks in MANUAL, of a cause, of a site, or all, in their order."""
    return list(conn.scalars(select(subtasks.c.id).where(waiting(reason, site)).order_by(IN_ORDER)))


def _check_kind(conn: Transaction, subtask_id: int, kind: str, name: str) -> None:
    node = nodes.get(conn, name)
    if Kind(kind) not in node.kinds:
        raise InputError(
            f"subtask {subtask_id} is of kind {kind}, node {name} takes {', '.join(sorted(node.kinds))}"
        )


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


def causes(conn: Transaction) -> list[Cause]:
    """Every cause, the one with the most subtasks first."""
    s = subtasks.c
    count = func.count().label("n")
    rows = conn.execute(
        select(s.reason, s.site, count, func.min(s.changed_at))
        .where(waiting())
        .group_by(s.reason, s.site)
        .order_by(count.desc(), s.reason, s.site)
    )
    return [Cause(reason or "", site, n, since) for reason, site, n, since in rows]


def manual_page(
    conn: Transaction, *, after: int = 0, most: int, reason: str | None = None, site: str | None = None
) -> list[ManualRow]:
    """Subtasks in MANUAL by their numbers.

    Args:
        after: behind this subtask.
        reason, site: only this one; None: all.
    """
    s = subtasks.c
    ids = select(s.id).where(waiting(reason, site), after < IN_ORDER).order_by(IN_ORDER).limit(most)
    rows = conn.execute(
        select(subtasks, products.c.name)
        .join(products, products.c.id == s.product_id)
        .where(s.id.in_(conn.scalars(ids).all()))
        .order_by(s.id)
    ).all()
    told = _why_given_up(conn, [row.id for row in rows])
    return [manual_row(r, r.changed_at, *told.get(r.id, ("", ""))) for r in rows]


def _why_given_up(conn: Transaction, ids: Sequence[int]) -> dict[int, tuple[str, str]]:
    """(why, suggestion) of each subtask, by the event that gave it to a person last."""
    rows = conn.execute(
        select(events.c.subtask_id, events.c.detail)
        .where(
            events.c.subtask_id.in_(ids),
            events.c.transition.in_((Transition.GIVE_UP, Transition.SET_ASIDE)),
        )
        .order_by(events.c.id)
    )
    return {
        subtask_id: ((detail or {}).get("why", ""), (detail or {}).get("suggestion", ""))
        for subtask_id, detail in rows
    }


if TYPE_CHECKING:
    from splitter.catalog.model import Catalog

log = logging.getLogger("reviewloop.sweeps")

UNREADABLE = (ValueError, TypeError, LookupError)
"""Errors of reading a row that a newer version wrote, or no program of ours."""

AGAIN = timedelta(seconds=30)
"""Rows are looked at one by one no more often."""
_AT_ONCE = 500
_OF_SWEEP = 1000
"""Maximum number of subtasks that a sweep takes from FAILED, and from SLEEP."""


def set_aside_unknown_sites(conn: Transaction, now: datetime, catalog: Catalog, found: dict[int, str]) -> int:
    """Set aside subtasks of sites that are no longer in the catalog; return how many.

    Args:
        found: their sites, by subtask.
    """
    told = {
        subtask_id: _event(FailureReason.UNKNOWN_SITE, f"{catalog.name} has no site {site} (any more)")
        for subtask_id, site in found.items()
    }
    return transitions.set_aside(conn, now, told)


def set_aside_unanswered(conn: Transaction, now: datetime, sites: Mapping[str, str]) -> int:
    """Set aside the waiting subtasks of sites whose host answers no node; return how many.

    Args:
        sites: their hosts that don't answer, by site.
    """
    if not sites:
        return 0
    waits = select(subtasks.c.id, subtasks.c.site).where(
        subtasks.c.state == State.WAIT, subtasks.c.site.in_(sites)
    )
    reason = FailureReason.HOST_UNREACHABLE
    told = {
        subtask_id: _event(reason, f"{sites[site]} answers no node, however often it is asked")
        for subtask_id, site in conn.execute(waits.limit(_AT_ONCE))
    }
    return transitions.set_aside(conn, now, told)


def set_aside_unreadable_rows(conn: Transaction, now: datetime, most: int) -> int:
    """Look at the rows that the next sweeps would read, and set aside those that can't be read; returns how many.

    No sweep reads a subtask in PRIORITY before it is in WAIT; of every other queue the sweeps read the first ones.

    Args:
        most: subtasks in WAIT that a decision reads.
    """
    told: dict[int, EventData] = {}
    s = subtasks.c
    due = s.state == State.WAIT, s.not_before.is_(None) | (s.not_before <= now)
    heads = [select(s.id).where(*due).order_by(s.priority.desc(), s.id).limit(most)]
    for state in (State.FAILED, State.SLEEP):
        heads.append(select(s.id).where(s.state == state).order_by(s.id).limit(_OF_SWEEP))
    for head in heads:
        ids = list(conn.scalars(head))
        for at in range(0, len(ids), _AT_ONCE):
            told |= _unreadable(conn, ids[at : at + _AT_ONCE])
    done = transitions.set_aside(conn, now, told)
    for subtask_id, event in told.items():
        log.error("subtask %d is set aside: %s", subtask_id, (event.detail or {}).get("why"))
    return done


def _unreadable(conn: Transaction, ids: Sequence[int]) -> dict[int, EventData]:
    try:
        for row in _rows(conn, ids):
            _read(conn, row)
        return {}
    except UNREADABLE as error:
        if len(ids) == 1:
            why = f"its row can't be read: {error}"
            return {ids[0]: _event(FailureReason.UNREADABLE, why)}
    half = len(ids) // 2
    return _unreadable(conn, ids[:half]) | _unreadable(conn, ids[half:])


def _rows(conn: Transaction, ids: Collection[int]) -> Sequence[Row[tuple[object, ...]]]:
    return conn.execute(select(subtasks).where(subtasks.c.id.in_(ids))).all()


def _read(conn: Transaction, row: Row[tuple[object, ...]]) -> None:
    """Read a row as the sweeps do. Raises one of `UNREADABLE`."""
    columns = row._mapping
    Kind(columns["kind"])
    if columns["state"] == State.FAILED:
        FailureReason(columns["reason"])
    failed_on = columns["failed_on"]
    if not isinstance(failed_on, list) or not all(isinstance(name, str) for name in failed_on):
        raise TypeError(f"failed_on is no list of nodes: {failed_on!r}")
    if columns["state"] == State.SLEEP and columns["part_id"] is not None:
        partitions.by_id(conn, {columns["part_id"]})


def _event(reason: FailureReason, why: str) -> EventData:
    return EventData(reason=reason, detail={"why": why, "suggestion": SUGGESTIONS[reason]})
