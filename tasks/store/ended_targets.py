"""Targets that gave no page: refused, given up, to be tried again, or known and unchanged.

A batch of them is written with a fixed number of statements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, update

from tasks.store import page_links
from tasks.store.leases import Lease
from tasks.store.owners import owned, owners_of
from tasks.store.pages import known_pages
from tasks.store.statement_batch import later
from tasks.store.tables import pages, targets
from tasks.store.writer import BatchOperation


@dataclass(frozen=True, slots=True)
class TargetEnd:
    """A target that gave no page.

    Attributes:
        state: "todo" (may be tried again), "refused", "given_up", or "stored" (known, and unchanged).
        counts: whether this was a try.
    """

    target_id: int
    state: str
    reason: str
    counts: bool


@dataclass(frozen=True, slots=True)
class EndedTarget:
    """A target that gave no page, for a lease.

    Attributes:
        unchanged: key of a known page that was asked again and has not changed.
        judge: as in `tasks.store.result_pages.ReadResults`.
    """

    lease: Lease
    end: TargetEnd
    unchanged: bytes | None = None
    judge: bool = False


def end_targets(conn: Connection, now: datetime, items: Sequence[EndedTarget]) -> list[None]:
    """Record targets that gave no page; nothing happens where the lease is over (the try was cut off)."""
    owners = owners_of(conn, [item.lease for item in items])
    groups: dict[tuple[str, str, bool], list[int]] = {}
    unchanged: dict[tuple[bytes, int], EndedTarget] = {}
    for item in items:
        if (owner := owners.get(owned(item.lease))) is not None:
            end = item.end
            groups.setdefault((end.state, end.reason, end.counts), []).append(end.target_id)
            if item.unchanged is not None:
                unchanged.setdefault((item.unchanged, owner.product_id), item)
    for (state, reason, counts), ids in groups.items():
        later(
            conn,
            update(targets)
            .where(targets.c.id.in_(ids), targets.c.state == "todo")
            .values(state=state, reason=reason, tries=targets.c.tries + (1 if counts else 0)),
        )
    if unchanged:
        _are_unchanged(conn, now, unchanged)
    return [None] * len(items)


ENDS: BatchOperation[EndedTarget, None] = BatchOperation(4, end_targets)


def _are_unchanged(conn: Connection, now: datetime, asked: Mapping[tuple[bytes, int], EndedTarget]) -> None:
    """Known pages, each asked again for a product: it may be the first time for that one."""
    known = {bytes(row.url_key): row.id for row in known_pages(conn, {key for key, _ in asked})}
    of = {(known[key], product_id): item for (key, product_id), item in asked.items()}
    new = {pair: of[pair] for pair in page_links.unlinked(conn, of)}
    sets = page_links.keyword_sets(conn, {item.lease.subtask_id for item in new.values() if item.judge})
    page_links.link_known(
        conn, now, {pair: sets[item.lease.subtask_id] if item.judge else None for pair, item in new.items()}
    )
    later(conn, update(pages).where(pages.c.id.in_(list(known.values()))).values(checked_at=now))
