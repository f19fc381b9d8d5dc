"""Subtasks that wait for a person: listed, chosen, tried again. `tasks.store.closing.cancel` abandons one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from splitter.catalog.names import Kind
from splitter.errors import InputError
from sqlalchemy import ColumnElement, Connection, Row, and_, func, literal_column, select, update

from tasks.domain.errors import IllegalTransition, UnknownSubtask
from tasks.domain.failures import FetchError
from tasks.domain.page_key import canonical, page_key
from tasks.domain.states import State, Transition
from tasks.store import left_over, nodes, transitions
from tasks.store.tables import events, products, subtasks, targets


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


def listed(conn: Connection) -> list[ManualRow]:
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
    conn: Connection,
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
    left = left_over.left_to_do(conn, [subtask_id])[subtask_id]
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


def _change(conn: Connection, subtask_id: int, edit: Edit) -> None:
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


def _change_addresses(conn: Connection, subtask_id: int, urls: Mapping[int, str]) -> None:
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


def chosen(conn: Connection, *, reason: str | None = None, site: str | None = None) -> list[int]:
    """Subtasks in MANUAL, of a cause, of a site, or all, in their order."""
    return list(conn.scalars(select(subtasks.c.id).where(waiting(reason, site)).order_by(IN_ORDER)))


def _check_kind(conn: Connection, subtask_id: int, kind: str, name: str) -> None:
    node = nodes.get(conn, name)
    if Kind(kind) not in node.kinds:
        raise InputError(
            f"subtask {subtask_id} is of kind {kind}, node {name} takes {', '.join(sorted(node.kinds))}"
        )
